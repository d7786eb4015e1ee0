"""Mean and spread of a noisy process predicted by one net, trained by likelihood."""
import random

import numpy as np
import torch
from torch import nn


class MeanAndSpread(nn.Module):
    def __init__(self, inputs=4, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean = nn.Linear(width, 1)
        self.log_spread = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h), self.log_spread(h)


def process(n):
    """Half of the inputs give an almost exact output, the others a noisy one."""
    x = torch.randn(n, 4)
    spread = torch.where(x[:, :1] > 0, 0.003, 0.8)
    return x, 0.7 * x[:, 1:2] + 0.4 * x[:, 2:3] + spread * torch.randn(n, 1)


def negative_log_likelihood(y, mean, log_spread):
    return (log_spread + 0.5 * ((y - mean) / log_spread.exp()).square()).mean()


def fit(model, steps=160, size=64):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    shown = []
    for step in range(steps):
        x, y = process(size)
        optimizer.zero_grad()
        loss = negative_log_likelihood(y, *model(x))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        shown.append(loss.item())
        if step % 20 == 19:
            print(f"step {step + 1:3d} nll {np.mean(shown[-20:]):.4g}")


random.seed(10)
np.random.seed(10)
torch.manual_seed(10)
fit(MeanAndSpread())
