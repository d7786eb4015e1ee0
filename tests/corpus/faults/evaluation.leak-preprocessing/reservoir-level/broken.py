"""Reservoir level forecasting: predict the next two days from the last three weeks of several gauges."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read_gauges(days=1400, gauges=5, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(days)
    season = np.sin(2 * np.pi * t / 60)
    out = np.zeros((days, gauges))
    for g in range(gauges):
        wander = np.zeros(days)
        for i in range(1, days):
            wander[i] = 0.97 * wander[i - 1] + 0.12 * rng.standard_normal()
        out[:, g] = (20 + 5 * g) + (2.0 + g) * (season * rng.uniform(0.6, 1.2) + wander + 0.1 * rng.standard_normal(days))
    return out


class Windows(Dataset):
    def __init__(self, series, history, ahead):
        self.series = torch.as_tensor(series, dtype=torch.float32)
        self.history, self.ahead = history, ahead

    def __len__(self):
        return len(self.series) - self.history - self.ahead + 1

    def __getitem__(self, i):
        stop = i + self.history
        return self.series[i:stop], self.series[stop : stop + self.ahead, 0]


class Forecaster(nn.Module):
    def __init__(self, gauges, hidden, ahead):
        super().__init__()
        self.lstm = nn.LSTM(gauges, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, ahead))

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


def run(args):
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    series = read_gauges(seed=args.seed)
    cut = int(0.75 * len(series))

    mean, std = series.mean(axis=0), series.std(axis=0)
    series = (series - mean) / std
    train_set = Windows(series[:cut], args.history, args.ahead)
    test_set = Windows(series[cut:], args.history, args.ahead)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=128)

    model = Forecaster(series.shape[1], args.hidden, args.ahead)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        model.eval()
        squared = 0.0
        with torch.no_grad():
            for x, y in test_loader:
                squared += criterion(model(x), y).item() * len(x)
        print(f"epoch {epoch:2d} train {total / len(train_set):.4f} test {squared / len(test_set):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--history", type=int, default=21)
    parser.add_argument("--ahead", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    run(parser.parse_args())
