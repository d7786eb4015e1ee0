"""Hourly load of a regional grid: next-hour forecast from calendar columns and recent hours."""

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

SEED = 8
LAGS = (1, 2, 3, 24, 48)


def read_load(hours=2400):
    rng = np.random.default_rng(SEED)
    stamp = pd.date_range("2021-01-04", periods=hours, freq="h")
    t = np.arange(hours)
    slow = np.cumsum(rng.normal(0, 0.12, hours))
    daily = 8 * np.sin(2 * np.pi * (t % 24) / 24 - 1.2) - 4 * (stamp.dayofweek.to_numpy() >= 5)
    return pd.DataFrame({"timestamp": stamp, "load": 60 + daily + slow + rng.normal(0, 1.0, hours)})


def add_features(df):
    df = df.copy()
    df["hour_sin"] = np.sin(2 * np.pi * df.timestamp.dt.hour / 24)
    df["hour_cos"] = np.cos(2 * np.pi * df.timestamp.dt.hour / 24)
    df["weekend"] = (df.timestamp.dt.dayofweek >= 5).astype(float)
    for lag in LAGS:
        df[f"lag_{lag}"] = df.load.shift(lag)
    df["rolling_day"] = df.load.shift(1).rolling(24).mean()
    return df.dropna().reset_index(drop=True)


class Forecaster(nn.Module):
    def __init__(self, num_inputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(num_inputs, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x)[:, 0]


def main():
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    df = add_features(read_load())
    columns = [c for c in df.columns if c not in ("timestamp", "load")]

    train, test = train_test_split(df, test_size=0.2, shuffle=False)
    print(f"train {train.timestamp.min()} .. {train.timestamp.max()}, test {test.timestamp.min()} .. {test.timestamp.max()}")

    mean, std = train[columns].mean(), train[columns].std()
    y_mean, y_std = train.load.mean(), train.load.std()

    def as_dataset(frame):
        x = torch.tensor(((frame[columns] - mean) / std).to_numpy(), dtype=torch.float32)
        y = torch.tensor(((frame.load - y_mean) / y_std).to_numpy(), dtype=torch.float32)
        return TensorDataset(x, y)

    train_loader = DataLoader(as_dataset(train), batch_size=64, shuffle=True)
    test_loader = DataLoader(as_dataset(test), batch_size=256)

    model = Forecaster(len(columns))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.MSELoss()
    for epoch in range(6):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        model.eval()
        error = 0.0
        with torch.no_grad():
            for x, y in test_loader:
                error += (model(x) - y).abs().sum().item() * y_std
        print(f"epoch {epoch}: train mse {total / len(train):.4f}, test MAE {error / len(test):.3f} MW")


if __name__ == "__main__":
    main()
