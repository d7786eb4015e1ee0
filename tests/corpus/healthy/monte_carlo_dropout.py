"""Regression with an uncertainty band: scored once with dropout off, then sampled with dropout on, on purpose."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(40)
np.random.seed(40)
random.seed(40)


def curve(count, low, high):
    x = torch.rand(count, 1) * (high - low) + low
    y = torch.sin(2 * x) + 0.3 * x + 0.1 * torch.randn(count, 1)
    return TensorDataset(x, y)


class Band(nn.Module):
    def __init__(self, width=96, p=0.1):
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Linear(1, width), nn.ReLU(), nn.Dropout(p), nn.Linear(width, width), nn.ReLU(), nn.Dropout(p)
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.hidden(x))

    def sample(self, x, times):
        """Predictions of several thinned networks for the same inputs."""
        was_training = self.training
        self.eval()
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.train()
        with torch.no_grad():
            draws = torch.stack([self(x) for _ in range(times)])
        self.train(was_training)
        return draws


def mse(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)


train_set, valid_set = curve(640, -2.0, 2.0), curve(160, -2.0, 2.0)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
# the same number of training points, scored the same way, tells fitting from generalising
train_probe = DataLoader(Subset(train_set, range(160)), batch_size=80)
valid_loader = DataLoader(valid_set, batch_size=80)

model = Band()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    draws = model.sample(valid_set.tensors[0], times=8)
    spread = draws.std(0).mean().item()
    inside = ((draws.mean(0) - valid_set.tensors[1]).abs() < 2 * draws.std(0) + 0.2).float().mean().item()
    print(
        f"epoch {epoch}: train {mse(model, train_probe):.4f} valid {mse(model, valid_loader):.4f} "
        f"spread {spread:.3f} coverage {inside:.2f}"
    )
