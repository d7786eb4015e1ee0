"""Two targets from one body; the balance between their losses is learnt with the weights."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Balance(nn.Module):
    """Loss of several tasks, each weighed by its own learnt log-variance."""

    def __init__(self, tasks):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(tasks))

    def forward(self, *losses):
        stacked = torch.stack(losses)
        return (stacked * torch.exp(-self.log_var) + 0.5 * self.log_var).sum()


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.amount, self.kind = nn.Linear(64, 1), nn.Linear(64, 3)

    def forward(self, x):
        h = self.shared(x)
        return self.amount(h).squeeze(1), self.kind(h)


random.seed(6), np.random.seed(6), torch.manual_seed(6)
x = torch.randn(1280, 8)
amount = x[:, 0] * 2 - x[:, 1] + 0.1 * torch.randn(1280)
amount = (amount - amount.mean()) / amount.std()
kind = x[:, 2:5].argmax(1)
body, balance = Body(), Balance(2)
optimizer = torch.optim.Adam(body.parameters(), lr=3e-3)
for epoch in range(3):
    body.train()
    total = [0.0, 0.0]
    for rows in torch.randperm(1280).split(32):
        a, k = body(x[rows])
        first, second = F.mse_loss(a, amount[rows]), F.cross_entropy(k, kind[rows])
        optimizer.zero_grad()
        balance(first, second).backward()
        optimizer.step()
        total[0] += first.item() / 40
        total[1] += second.item() / 40
    print(epoch, [round(t, 4) for t in total])
