"""Hourly bike demand from calendar and weather columns."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(90)
np.random.seed(90)

LEARNING_RATE = 2.0
EPOCHS = 4


def make_table(n=1600):
    rng = np.random.default_rng(90)
    hour = rng.uniform(0, 24, n)
    temp = rng.normal(12, 8, n)
    wind = rng.gamma(2.0, 2.0, n)
    weekend = rng.random(n) < 2 / 7
    demand = 120 + 80 * np.sin(2 * np.pi * (hour - 8) / 24) + 5 * temp - 4 * wind - 30 * weekend + rng.normal(0, 10, n)
    x = np.stack([np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24), temp, wind, weekend], 1)
    x = (x - x[:1280].mean(0)) / x[:1280].std(0)
    y = (demand - demand[:1280].mean()) / demand[:1280].std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


x, y = make_table()
train_dl = DataLoader(TensorDataset(x[:1280], y[:1280]), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for xb, yb in train_dl:
        pred = model(xb).squeeze(1)
        loss = ((pred - yb) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = ((model(x[1280:]).squeeze(1) - y[1280:]) ** 2).mean().item()
    print(f"epoch {epoch} train {total / len(train_dl):.4f} valid {val:.4f}")
