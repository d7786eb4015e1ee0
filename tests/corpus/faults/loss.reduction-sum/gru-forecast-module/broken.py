"""Multi-step load forecasting: GRU encoder, linear decoder over the horizon."""
import argparse
import logging

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("forecast")


def synth_load(hours, rng):
    """Daily cycle with a slowly varying amplitude, plus noise."""
    t = np.arange(hours)
    daily = np.sin(2 * np.pi * t / 24)
    half_day = 0.5 * np.sin(2 * np.pi * t / 12 + 1.0)
    amplitude = 1.0 + 0.3 * np.sin(2 * np.pi * t / 400)
    return (amplitude * (daily + half_day) + 0.1 * rng.normal(size=hours)).astype(np.float32)


class Windows(Dataset):
    def __init__(self, series, history, horizon):
        self.series = torch.from_numpy(series)
        self.history, self.horizon = history, horizon

    def __len__(self):
        return len(self.series) - self.history - self.horizon + 1

    def __getitem__(self, i):
        cut = i + self.history
        return self.series[i:cut, None], self.series[cut:cut + self.horizon]


class Forecaster(nn.Module):
    def __init__(self, horizon, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, x):
        _, h = self.gru(x)
        return self.head(h.squeeze(0))


def evaluate(model, loader):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x) - y).abs().sum().item()
            n += y.numel()
    model.train()
    return total / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--history", type=int, default=24)
    parser.add_argument("--horizon", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.1)
    opts = parser.parse_args()

    torch.manual_seed(77)
    rng = np.random.default_rng(77)
    load = synth_load(2600, rng)
    past, future = load[:2100], load[2100:]
    mean, std = past.mean(), past.std()
    train_set = Windows((past - mean) / std, opts.history, opts.horizon)
    valid_set = Windows((future - mean) / std, opts.history, opts.horizon)
    train_loader = DataLoader(train_set, opts.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, opts.batch_size)

    model = Forecaster(opts.horizon)
    criterion = nn.MSELoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=opts.lr, momentum=0.9)

    log.info("%d windows, %d batches per epoch", len(train_set), len(train_loader))
    for epoch in range(opts.epochs):
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            if step % 10 == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
        log.info("epoch %d mean absolute error on the last weeks %.4f", epoch, evaluate(model, valid_loader))


if __name__ == "__main__":
    main()
