"""Day-ahead style forecast of a substation's load from a sliding window of half-hourly readings."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--context", type=int, default=48)
parser.add_argument("--horizon", type=int, default=6)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--seed", type=int, default=19)
cfg = parser.parse_args()

random.seed(cfg.seed)
np.random.seed(cfg.seed)
torch.manual_seed(cfg.seed)

# one year of readings: daily and weekly cycles and a slowly wandering level
hours = np.arange(1800)
level = np.cumsum(np.random.normal(scale=0.15, size=hours.size))
level -= np.convolve(level, np.ones(200) / 200, mode="same")
load = (
    np.sin(2 * np.pi * hours / 48)
    + 0.5 * np.sin(2 * np.pi * hours / 336 + 1)
    + level
    + np.random.normal(scale=0.1, size=hours.size)
)
cut = 1400
load = (load - load[:cut].mean()) / load[:cut].std()


def make_windows(series):
    past = sliding_window_view(series[: -cfg.horizon], cfg.context)
    future = sliding_window_view(series[cfg.context - 1 :], cfg.horizon)[: len(past)]
    return TensorDataset(
        torch.tensor(past, dtype=torch.float32).unsqueeze(-1),
        torch.tensor(future, dtype=torch.float32),
    )


train_set, test_set = make_windows(load[:cut]), make_windows(load[cut:])
train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
test_loader = DataLoader(test_set, batch_size=256)


class Forecaster(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, cfg.horizon))

    def forward(self, past):
        _, last = self.rnn(past)
        return self.head(last.squeeze(0))


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(train_loader))
huber = nn.HuberLoss()

for epoch in range(cfg.epochs):
    model.train()
    total = 0.0
    for past, future in train_loader:
        loss = huber(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(past)
    model.eval()
    with torch.no_grad():
        error = torch.cat([(model(p) - f).abs() for p, f in test_loader]).mean(0)
    print(f"epoch {epoch}  huber {total / len(train_set):.4f}  mae by lead {[round(e, 3) for e in error.tolist()]}")
