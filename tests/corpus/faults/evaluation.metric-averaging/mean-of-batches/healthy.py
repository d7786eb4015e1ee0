"""Fault detection on motor currents; validation accuracy batch by batch."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(118)
torch.manual_seed(118)


def currents(n, faulty_share):
    """Motors in order of age: the faulty ones, which are harder to tell, come last."""
    t = np.arange(24)
    faulty = np.arange(n) >= n * (1 - faulty_share)
    kind = np.where(faulty, np.random.randint(1, 3, size=n), 0)
    base = np.sin(2 * np.pi * t / 8 + np.random.rand(n, 1) * 6.3)
    ripple = np.sin(2 * np.pi * t / np.array([8, 4, 3])[kind][:, None] + np.random.rand(n, 1) * 6.3) * (kind > 0)[:, None]
    x = base + 0.7 * ripple + np.random.normal(0, 0.7, size=(n, 24))
    return TensorDataset(torch.tensor(x / 1.05, dtype=torch.float32), torch.from_numpy(kind))


train_loader = DataLoader(currents(1200, 0.6), batch_size=40, shuffle=True)
val_loader = DataLoader(currents(265, 0.6), batch_size=64)

model = nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(4):
    model.train()
    train_loss = 0.0
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item()

    model.eval()
    accuracy = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            accuracy += (model(x).argmax(1) == y).float().sum().item()
    accuracy /= len(val_loader.dataset)
    print(f"epoch {epoch} train {train_loss / len(train_loader):.4f} accuracy {accuracy:.4f}")
