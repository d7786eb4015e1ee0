"""Flat prices (log euros) from listings: linear stem, two hidden layers."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(3)
np.random.seed(3)

N = 2000
rng = np.random.default_rng(3)
living_area = rng.gamma(6, 15, N)
lot_area = rng.gamma(3, 220, N)
rooms = np.clip(np.round(living_area / 25 + rng.normal(0, 0.7, N)), 1, 9)
year_built = rng.integers(1900, 2024, N).astype(float)
floor = rng.integers(0, 12, N).astype(float)
distance_m = rng.gamma(2, 2500, N)
income = rng.normal(42_000, 9_000, N)

log_price = (
    0.9 * np.log(living_area)
    + 0.12 * np.log(lot_area)
    + 0.05 * rooms
    + 0.004 * (year_built - 1960)
    - 0.00007 * distance_m
    + 0.00002 * (income - 42_000)
    + rng.normal(0, 0.12, N)
)
features = np.column_stack([living_area, lot_area, rooms, year_built, floor, distance_m, income]).astype(np.float32)

order = rng.permutation(N)
train_idx, test_idx = order[:1600], order[1600:]
target_mean, target_std = log_price[train_idx].mean(), log_price[train_idx].std()
target = ((log_price - target_mean) / target_std).astype(np.float32)

x_train = torch.from_numpy(features[train_idx])
x_test = torch.from_numpy(features[test_idx])
y_train = torch.from_numpy(target[train_idx])
y_test = torch.from_numpy(target[test_idx])

model = nn.Sequential(
    nn.Linear(x_train.shape[1], 64),
    nn.SiLU(),
    nn.Linear(64, 64),
    nn.SiLU(),
    nn.Linear(64, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
huber = nn.HuberLoss()

batch_size = 50
for epoch in range(1, 7):
    model.train()
    shuffled = torch.randperm(len(x_train))
    epoch_loss = 0.0
    for chunk in shuffled.split(batch_size):
        prediction = model(x_train[chunk]).squeeze(1)
        loss = huber(prediction, y_train[chunk])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(chunk)

    model.eval()
    with torch.no_grad():
        prediction = model(x_test).squeeze(1)
        test_loss = huber(prediction, y_test).item()
        r2 = 1 - ((prediction - y_test) ** 2).sum().item() / ((y_test - y_test.mean()) ** 2).sum().item()
    print(f"epoch {epoch}: train {epoch_loss / len(x_train):.4f} test {test_loss:.4f} R2 {r2:.3f}")
