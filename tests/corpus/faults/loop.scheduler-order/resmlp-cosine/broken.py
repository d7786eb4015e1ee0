"""Residual MLP on a two-feature interaction task; cosine schedule per batch."""
import random

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

SEED = 2718
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

EPOCHS, BATCH = 4, 40


def interactions(n):
    x = np.random.normal(size=(n, 12)).astype(np.float32)
    logit = 2.0 * x[:, 0] * x[:, 1] + x[:, 2] - x[:, 3]
    y = (logit + np.random.logistic(scale=0.3, size=n) > 0).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, h):
        return h + self.down(torch.nn.functional.gelu(self.up(self.norm(h))))


net = nn.Sequential(nn.Linear(12, 32), Residual(32), Residual(32), nn.LayerNorm(32), nn.Linear(32, 1), nn.Flatten(0))
train_dl = DataLoader(interactions(1000), batch_size=BATCH, shuffle=True)
valid_dl = DataLoader(interactions(300), batch_size=150)
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
scheduler = CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train_dl), eta_min=1e-5)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(EPOCHS):
    net.train()
    epoch_loss = 0.0
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        scheduler.step()
        optimizer.step()
        epoch_loss += loss.item()
    net.eval()
    correct = 0
    with torch.no_grad():
        for x, y in valid_dl:
            correct += ((net(x) > 0) == y.bool()).sum().item()
    lr = optimizer.param_groups[0]["lr"]
    print(f"epoch {epoch} loss {epoch_loss / len(train_dl):.4f} accuracy {correct / 300:.3f} lr {lr:.2e}")
