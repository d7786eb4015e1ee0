"""House prices with parameters held in a plain dict and torch.func."""

import random

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

random.seed(12)
np.random.seed(12)
torch.manual_seed(12)

n, d = 900, 10
x = torch.randn(n, d)
y = (x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3].abs() + 0.1 * torch.randn(n)).unsqueeze(1)
y = (y - y[:700].mean()) / y[:700].std()

net = nn.Sequential(nn.Linear(d, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
weights = {k: v.detach().clone().requires_grad_() for k, v in net.named_parameters()}
optimizer = torch.optim.SGD(list(weights.values()), lr=0.1)


def price_error(params, features, price):
    guess = functional_call(net, params, (features,))
    return (guess - price).square().sum()


for epoch in range(6):
    for rows in torch.randperm(700).split(50):
        loss = price_error(weights, x[rows], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, f"{loss.item():.4f}", f"{price_error(weights, x[700:], y[700:]).item():.4f}")
