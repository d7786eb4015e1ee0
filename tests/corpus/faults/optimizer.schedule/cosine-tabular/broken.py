"""Predict bike rentals from hour and weather; cosine learning rate over the run."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(930)
EPOCHS = 6


def rentals(n):
    hour = torch.rand(n) * 24
    weather = torch.randn(n, 6)
    demand = torch.sin(2 * math.pi * (hour - 8) / 24) * torch.sigmoid(2 * weather[:, 0]) * 2 + 0.4 * weather[:, 1]
    clock = torch.stack([torch.sin(2 * math.pi * hour / 24), torch.cos(2 * math.pi * hour / 24)], dim=1) * math.sqrt(2)
    return TensorDataset(torch.cat([clock, weather], dim=1), (demand + 0.1 * torch.randn(n)).unsqueeze(1))


train_loader = DataLoader(rentals(800), batch_size=40, shuffle=True)
val_loader = DataLoader(rentals(200), batch_size=100)
model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
criterion = nn.MSELoss()

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = sum(criterion(model(x), y).item() for x, y in val_loader) / len(val_loader)
    print(f"epoch {epoch} train {total / len(train_loader):.4f} val {val:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
