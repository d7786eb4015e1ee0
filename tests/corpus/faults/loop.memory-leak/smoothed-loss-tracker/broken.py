"""Graph-free smoothing of the training curve while a small classifier learns spirals."""
import math
import random

import numpy as np
import torch
import torch.nn as nn


class Smoother:
    """Exponential moving average that is shown in the log."""

    def __init__(self, keep=0.95):
        self.keep, self.value = keep, None

    def add(self, x):
        self.value = x if self.value is None else self.keep * self.value + (1 - self.keep) * x
        return self.value


def spirals(n):
    arm = torch.randint(0, 3, (n,))
    radius = torch.rand(n) * 0.9 + 0.1
    angle = 4 * radius + arm * 2 * math.pi / 3 + 0.15 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1) * 1.7, arm


random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(2, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()
smooth = Smoother()
for step in range(240):
    x, y = spirals(256)
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    shown = smooth.add(loss)
    if step % 40 == 39:
        print(f"step {step + 1} smoothed loss {float(shown):.4f}")
