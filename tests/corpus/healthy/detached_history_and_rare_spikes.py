"""Quantile demand forecasting with heavy-tailed sales: losses jump now and then, by themselves, and come back.

The step keeps a growing list of detached tensors, clips, and evaluates in the middle of an epoch.
"""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(31)
np.random.seed(31)
torch.manual_seed(31)

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def sales(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (n, 8)).astype(np.float32)
    level = 0.9 * x[:, 0] - 0.6 * x[:, 1] + 0.5 * x[:, 2] * (x[:, 3] > 0)
    y = level + 0.15 * rng.standard_t(2.5, n)
    return TensorDataset(torch.from_numpy(x), torch.tensor(y, dtype=torch.float32))


class QuantileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.trunk(x))


def pinball(pred, y):
    diff = y[:, None] - pred
    return torch.maximum(QUANTILES * diff, (QUANTILES - 1) * diff).mean()


def evaluate(model, loader):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        value = sum(pinball(model(x), y).item() for x, y in loader) / len(loader)
    model.train(was_training)
    return value


train = DataLoader(sales(1920, 1), batch_size=32, shuffle=True)
held_out = DataLoader(sales(400, 2), batch_size=200)
model = QuantileNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
curve = []
model.train()
for epoch in range(3):
    for step, (x, y) in enumerate(train):
        loss = pinball(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        curve.append(loss.detach())
        if step % 25 == 24:
            print(
                f"epoch {epoch} step {step + 1}: train {torch.stack(curve[-25:]).mean():.4f} held out {evaluate(model, held_out):.4f}"
            )
