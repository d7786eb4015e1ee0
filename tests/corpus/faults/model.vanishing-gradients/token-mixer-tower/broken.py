"""Classify accelerometer segments with a tall tower of small time-mixing blocks."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MixBlock(nn.Module):
    def __init__(self, steps: int, channels: int):
        super().__init__()
        self.over_time = nn.Linear(steps, steps)
        self.over_channels = nn.Linear(channels, channels)

    def forward(self, x):
        y = torch.tanh(self.over_time(x.transpose(1, 2)).transpose(1, 2))
        return torch.tanh(self.over_channels(y))


class Tower(nn.Module):
    def __init__(self, steps, channels, width, depth, classes):
        super().__init__()
        self.stem = nn.Linear(channels, width)
        self.blocks = nn.ModuleList([MixBlock(steps, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h.mean(dim=1)))


def segments(n, seed, steps=24, channels=3, classes=4):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, n)
    t = np.arange(steps)[None, :, None]
    phase = rng.uniform(0, 2 * np.pi, (n, 1, channels))
    speed = (label + 1)[:, None, None] * 2 * np.pi / steps
    x = np.sin(speed * t + phase) + 0.3 * rng.normal(size=(n, steps, channels)) + 0.3 * label[:, None, None]
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(label))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--depth", type=int, default=16)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=23)
    args = p.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train = DataLoader(segments(800, 1), batch_size=40, shuffle=True)
    test = DataLoader(segments(200, 2), batch_size=200)
    tower = Tower(24, 3, args.width, args.depth, 4)
    opt = torch.optim.Adam(tower.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        tower.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.cross_entropy(tower(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        tower.eval()
        with torch.no_grad():
            hits = sum((tower(x).argmax(1) == y).sum().item() for x, y in test)
        print(f"{epoch}: train loss {total / len(train):.4f}  test acc {hits / 200:.3f}")


if __name__ == "__main__":
    main()
