"""Forecast tomorrow's temperature from two weeks of station data: a TCN in float16 autocast."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--window", type=int, default=14)
    p.add_argument("--loss-scale", type=float, default=2.0**16)
    p.add_argument("--seed", type=int, default=19)
    return p.parse_args()


def station_series(days, rng):
    t = np.arange(days)
    front = np.zeros(days)
    for i in range(1, days):
        front[i] = 0.85 * front[i - 1] + rng.normal(0, 1.0)
    temperature = 10 + 9 * np.sin(2 * np.pi * t / 365) + 3 * front
    pressure = 1013 - 5 * np.roll(front, -1) + rng.normal(0, 1.0, days)
    humidity = 70 - 4 * front + rng.normal(0, 3.0, days)
    return np.stack([temperature, pressure, humidity], axis=1)


class CausalBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.norm = nn.GroupNorm(1, channels)

    def forward(self, x):
        return x + F.gelu(self.norm(self.conv(F.pad(x, (self.pad, 0)))))


class TCN(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.lift = nn.Conv1d(3, channels, 1)
        self.blocks = nn.ModuleList([CausalBlock(channels, d) for d in (1, 2, 4)])
        self.readout = nn.Linear(channels, 1)

    def forward(self, x):
        x = self.lift(x.transpose(1, 2))
        for block in self.blocks:
            x = block(x)
        return self.readout(x[:, :, -1]).squeeze(-1)


def main():
    args = get_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    series = station_series(1100, np.random.default_rng(args.seed))
    cut = 900
    mean, std = series[:cut].mean(0), series[:cut].std(0)
    series = torch.tensor((series - mean) / std, dtype=torch.float32)
    windows = series.unfold(0, args.window, 1).transpose(1, 2)[:-1]
    targets = series[args.window :, 0]
    train_set = TensorDataset(windows[: cut - args.window], targets[: cut - args.window])
    valid_x, valid_y = windows[cut:], targets[cut:]
    loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)

    model = TCN()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=args.loss_scale)

    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.float16):
                prediction = model(x)
                loss = F.mse_loss(prediction.float(), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * len(y)
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            valid = F.mse_loss(model(valid_x).float(), valid_y).item()
        print(f"epoch {epoch}: train mse {total / len(train_set):.4f}, valid mse {valid:.4f}, scale {scaler.get_scale():.3g}")


if __name__ == "__main__":
    main()
