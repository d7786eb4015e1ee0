"""Forecast next-hour traffic counts at several junctions with an LSTM; windows come from yearly sensor dumps."""

import argparse
import random

import numpy as np
import torch
from torch import nn


def sensor_dump(rng, junctions, hours):
    """Standardised counts: a daily and a weekly rhythm with noise, one column per junction."""
    t = np.arange(hours)[:, None]
    phase = rng.uniform(0, 24, size=(1, junctions))
    counts = np.sin((t + phase) / 24 * 2 * np.pi) + 0.3 * np.sin((t + phase) / 168 * 2 * np.pi)
    counts = counts + rng.normal(0, 0.15, size=(hours, junctions))
    # the logger was reset once and wrote its internal clock into the count columns for a few hours
    counts[3005:3009] = 900.0 + np.arange(4)[:, None] * 25
    return counts.astype(np.float32)


def windows(series, length):
    picks = []
    for start in range(0, len(series) - length - 1, 12):
        picks.append(series[start : start + length + 1])
    return torch.from_numpy(np.stack(picks))


class Forecaster(nn.Module):
    def __init__(self, junctions, hidden):
        super().__init__()
        self.rnn = nn.LSTM(junctions, hidden)
        self.out = nn.Linear(hidden, junctions)

    def forward(self, past):
        states, _ = self.rnn(past)
        return self.out(states)


def train(opts):
    rng = np.random.default_rng(opts.seed)
    series = sensor_dump(rng, opts.junctions, 8000)
    pool = windows(series, opts.length)
    pool = pool[torch.randperm(len(pool))]
    model = Forecaster(opts.junctions, opts.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr)
    smooth = None
    for epoch in range(opts.epochs):
        for number, chunk in enumerate(pool[torch.randperm(len(pool))].split(opts.batch)):
            chunk = chunk.transpose(0, 1)
            loss = nn.functional.mse_loss(model(chunk[:-1]), chunk[1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
            if number % 10 == 0:
                print(f"epoch {epoch} batch {number}: mse {loss.item():.4f} (smoothed {smooth:.4f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junctions", type=int, default=5)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=4)
    options = parser.parse_args()
    random.seed(options.seed)
    np.random.seed(options.seed)
    torch.manual_seed(options.seed)
    train(options)
