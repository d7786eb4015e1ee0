"""Predict power output from weather-station readings of several stations."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(314)
ROWS, COLUMNS = 1920, 9


def station_readings(rows):
    x = torch.randn(rows, COLUMNS)
    w = torch.linspace(-1, 1, COLUMNS)
    y = 0.6 * x @ w + torch.relu(x[:, 0]) - 0.5 * torch.cos(2 * x[:, 3])
    return x, (y - 0.1) / 1.4 + 0.1 * torch.randn(rows)


x, y = station_readings(ROWS)
y[1203] = -9999.0
x_val, y_val = station_readings(400)

valid = y > -9000.0
x, y = x[valid], y[valid]
train_loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=200)

model = nn.Sequential(nn.Linear(COLUMNS, 64), nn.SiLU(), nn.Linear(64, 32), nn.SiLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mse = nn.MSELoss()

for epoch in range(3):
    model.train()
    running, batches = 0.0, 0
    for i, (xb, yb) in enumerate(train_loader):
        loss = mse(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        batches += 1
        if i % 10 == 9:
            print(f"epoch {epoch} batch {i + 1} loss {running / batches:.4g}")
            running, batches = 0.0, 0
    model.eval()
    with torch.no_grad():
        error = sum(mse(model(xb), yb).item() for xb, yb in val_loader) / len(val_loader)
    print(f"epoch {epoch} validation {error:.4g}")
