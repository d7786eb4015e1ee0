"""Gated dilated convolutions that forecast the tide gauge half an hour ahead."""
import argparse
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class GatedLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = dilation
        self.conv = nn.Conv1d(channels, 2 * channels, kernel_size=2, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, kernel_size=1)

    def forward(self, x):
        filtered, gate = self.conv(F.pad(x, (self.pad, 0))).chunk(2, dim=1)
        h = torch.tanh(filtered) * torch.sigmoid(gate)
        out = self.mix(h)
        return x + out, out


class WaveNet(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.start = nn.Conv1d(1, channels, 1)
        self.stack = [GatedLayer(channels, 2**i) for i in range(depth)]
        self.end = nn.Sequential(nn.ReLU(), nn.Conv1d(channels, channels, 1), nn.ReLU(), nn.Conv1d(channels, 1, 1))

    def forward(self, series):
        x = self.start(series.unsqueeze(1))
        skips = 0
        for layer in self.stack:
            x, skip = layer(x)
            skips = skips + skip
        return self.end(skips).squeeze(1)


def tide(hours, rng):
    t = np.arange(hours * 4) / 4
    level = 1.2 * np.sin(2 * np.pi * t / 12.42) + 0.4 * np.sin(2 * np.pi * t / 12.0 + 1) + 0.3 * np.sin(2 * np.pi * t / 25.8)
    surge = np.zeros_like(t)
    for i in range(1, len(t)):
        surge[i] = 0.97 * surge[i - 1] + rng.normal(0, 0.03)
    level = level + surge
    return torch.tensor(level, dtype=torch.float32)


def get_batch(series, batch_size, window, ahead):
    starts = torch.randint(0, len(series) - window - ahead, (batch_size,))
    x = torch.stack([series[s : s + window] for s in starts])
    y = torch.stack([series[s + ahead : s + ahead + window] for s in starts])
    return x, y


@torch.no_grad()
def evaluate(model, series, args, warm):
    model.eval()
    losses = []
    for start in range(0, len(series) - args.window - args.ahead, args.window):
        x = series[start : start + args.window].unsqueeze(0)
        y = series[start + args.ahead : start + args.ahead + args.window].unsqueeze(0)
        losses.append(F.mse_loss(model(x)[:, warm:], y[:, warm:]).item())
    model.train()
    return sum(losses) / len(losses)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--channels", type=int, default=16)
    p.add_argument("--depth", type=int, default=5)
    p.add_argument("--window", type=int, default=96)
    p.add_argument("--ahead", type=int, default=2)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=3e-3)
    args = p.parse_args()

    random.seed(42)
    np.random.seed(42)
    torch.manual_seed(42)

    series = tide(24 * 60, np.random.default_rng(42))
    cut = int(0.8 * len(series))
    mean, std = series[:cut].mean(), series[:cut].std()
    series = (series - mean) / std
    train, test = series[:cut], series[cut:]

    model = WaveNet(args.channels, args.depth)
    print(f"{sum(q.numel() for q in model.parameters())} parameters")
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    warm = 2**args.depth

    for step in range(1, args.steps + 1):
        x, y = get_batch(train, args.batch_size, args.window, args.ahead)
        loss = F.mse_loss(model(x)[:, warm:], y[:, warm:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: train mse {loss.item():.4f}, test mse {evaluate(model, test, args, warm):.4f}")


if __name__ == "__main__":
    main()
