"""Crop type (0..4) of a field from its season of satellite measurements, a GRU over the months."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CROPS = 5


def seasons(n, rng):
    """Each crop greens up and is harvested in its own months; the codes have no order."""
    peak = np.array([6, 2, 8, 4, 10])
    width = np.array([2.0, 1.0, 1.0, 2.5, 1.5])
    crop = rng.integers(0, CROPS, size=n)
    month = np.arange(12)
    green = np.exp(-(((month - peak[crop, None]) / width[crop, None]) ** 2))
    wet = rng.normal(size=(n, 12))
    series = np.stack([green + 0.15 * rng.normal(size=green.shape), wet], axis=-1)
    return series.astype(np.float32), crop


class CropModel(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, CROPS)

    def forward(self, series):
        states, _ = self.gru(series)
        return self.head(states[:, -1])


def objective(output, crop):
    return nn.functional.cross_entropy(output, crop)


def decide(output):
    return output.argmax(dim=-1)


def main(args):
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    series, crop = seasons(1800, rng)
    mean, std = series[:1500].mean((0, 1)), series[:1500].std((0, 1))
    series = torch.from_numpy((series - mean) / std)
    crop = torch.from_numpy(crop)
    loader = DataLoader(TensorDataset(series[:1500], crop[:1500]), batch_size=50, shuffle=True)
    model = CropModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = objective(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = (decide(model(series[1500:])) == crop[1500:]).float().mean().item()
        print(f"epoch {epoch + 1}/{args.epochs} loss {total / len(loader):.4f} accuracy {right:.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=73)
    main(p.parse_args())
