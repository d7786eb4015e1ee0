import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(11)
torch.manual_seed(11)


def load_stations(n):
    """Hourly station readings: temperature, pressure, humidity, wind, rain; the target is river level."""
    temperature = np.random.normal(12.0, 6.0, n)
    pressure = np.random.normal(1013.0, 8.0, n)
    humidity = np.random.beta(5, 2, n)
    wind = np.random.gamma(2.0, 3.0, n)
    rain = np.random.gamma(1.2, 4.0, n)
    rain[np.random.rand(n) < 0.002] = 0.0
    level = 0.9 * np.log1p(rain) + 0.3 * humidity - 0.04 * (pressure - 1013.0) + 0.1 * np.random.randn(n)
    return temperature, pressure, humidity, wind, rain, level


def build_features(temperature, pressure, humidity, wind, rain):
    columns = [
        (temperature - 12.0) / 6.0,
        (pressure - 1013.0) / 8.0,
        (humidity - 0.7) / 0.16,
        (wind - 6.0) / 4.2,
        (np.log1p(rain) - 1.4) / 0.8,
    ]
    return np.stack(columns, axis=1).astype(np.float32)


*readings, level = load_stations(3200)
features = build_features(*readings)
split = 2800
train_set = TensorDataset(torch.from_numpy(features[:split]), torch.from_numpy(level[:split].astype(np.float32)))
val_x, val_y = torch.from_numpy(features[split:]), torch.from_numpy(level[split:].astype(np.float32))
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)

net = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.MSELoss()

for epoch in range(2):
    net.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    net.eval()
    with torch.no_grad():
        val = criterion(net(val_x).squeeze(1), val_y).item()
    print(f"epoch {epoch}: train {total / len(train_set):.4f} val {val:.4f}")
