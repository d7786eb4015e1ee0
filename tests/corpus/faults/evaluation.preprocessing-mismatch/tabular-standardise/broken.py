"""Energy use of buildings: raw engineering units in, standardised for the network."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(240)
torch.manual_seed(240)

UNITS_MEAN = np.array([120.0, 21.0, 3.0, 1985.0, 0.4])
UNITS_STD = np.array([45.0, 4.0, 1.2, 18.0, 0.15])


def buildings(n):
    z = rng.normal(size=(n, 5))
    use = 0.8 * z[:, 0] - 0.6 * z[:, 1] * z[:, 4] + 0.3 * np.sin(2 * z[:, 3])
    raw = UNITS_MEAN + UNITS_STD * z
    return raw.astype(np.float32), (use + rng.normal(0, 0.1, size=n)).astype(np.float32)


x_train, y_train = buildings(1200)
x_valid, y_valid = buildings(300)

mean, std = x_train.mean(axis=0), x_train.std(axis=0)
x_train = (x_train - mean) / std

train_loader = DataLoader(TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train)), batch_size=40, shuffle=True)
valid_loader = DataLoader(TensorDataset(torch.from_numpy(x_valid), torch.from_numpy(y_valid)), batch_size=100)
model = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.MSELoss()

for epoch in range(4):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        valid = sum(criterion(model(x), y).item() for x, y in valid_loader) / len(valid_loader)
    print(f"epoch {epoch} train {total / len(train_loader):.4f} valid {valid:.4f}")
