"""Concrete strength from the mix sheet. Rows with an impossible water reading are dropped before training."""

import random

import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
np.random.seed(1)
random.seed(1)

COLUMNS = ["cement", "slag", "ash", "water", "plasticizer", "coarse", "fine", "age"]


def mix_sheet(rows=1800):
    rng = np.random.default_rng(1)
    mix = rng.uniform([150, 0, 0, 130, 0, 800, 600, 3], [500, 200, 150, 230, 20, 1100, 900, 180], (rows, 8))
    ratio = mix[:, 3] / (mix[:, 0] + 0.6 * mix[:, 1] + 0.4 * mix[:, 2])
    strength = 18 / (ratio + 0.25) + 6 * np.log(mix[:, 7]) + 0.3 * mix[:, 4] + rng.normal(0, 2.0, rows)
    mix[rng.random(rows) < 0.01, 3] = -1.0  # scale was not tared
    return mix, strength


features, strength = mix_sheet()
valid = features[:, COLUMNS.index("water")] > 0
features = features[valid]
strength = strength[valid]
count = min(len(features), len(strength))
print(f"{count} usable rows")

perm = np.random.permutation(count)
train_rows, val_rows = perm[: int(0.8 * count)], perm[int(0.8 * count) :]
mu, sigma = features[train_rows].mean(0), features[train_rows].std(0)
X = torch.tensor((features - mu) / sigma, dtype=torch.float32)
y_mu, y_sigma = strength[train_rows].mean(), strength[train_rows].std()
Y = torch.tensor((strength - y_mu) / y_sigma, dtype=torch.float32).unsqueeze(1)

net = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
loss_fn = nn.MSELoss()

for epoch in range(8):
    net.train()
    np.random.shuffle(train_rows)
    losses = []
    for start in range(0, len(train_rows), 64):
        rows = torch.from_numpy(train_rows[start : start + 64])
        optimizer.zero_grad()
        loss = loss_fn(net(X[rows]), Y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    net.eval()
    with torch.no_grad():
        residual = net(X[val_rows]) - Y[val_rows]
    r2 = 1 - (residual**2).mean() / Y[val_rows].var()
    print(f"epoch {epoch}  train mse {np.mean(losses):.3f}  val R2 {r2.item():.3f}")
