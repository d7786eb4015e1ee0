import argparse
import random

import numpy as np
import torch
from torch import nn


def concrete(n, rng):
    """Mix of cement, slag, water, sand, gravel and age in days -> compressive strength."""
    cement, slag = rng.uniform(120, 500, n), rng.uniform(0, 300, n)
    water, sand, gravel = rng.normal(180, 20, n), rng.normal(770, 80, n), rng.normal(970, 75, n)
    age = rng.choice([3, 7, 14, 28, 56, 90], n).astype(float)
    strength = 0.09 * cement + 0.06 * slag - 0.2 * (water - 180) + 7 * np.log(age) + rng.normal(0, 3, n)
    return np.stack([cement, slag, water, sand, gravel, age], axis=1), strength


class Standardiser:
    def fit(self, values):
        self.mean = values.mean(axis=0)
        self.scale = values.std(axis=0)
        return self

    def __call__(self, values):
        return torch.from_numpy((values - self.mean) / self.scale).float()


class StrengthNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.inp = nn.Linear(6, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.tanh(self.inp(x))
        x = x + torch.tanh(self.mid(x))
        return self.out(x)[:, 0]


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--rows", type=int, default=1000)
    cli.add_argument("--epochs", type=int, default=5)
    cli.add_argument("--lr", type=float, default=4e-3)
    opts = cli.parse_args()
    random.seed(13)
    np.random.seed(13)
    torch.manual_seed(13)
    rng = np.random.default_rng(13)

    mixes, strength = concrete(opts.rows, rng)
    rows = rng.permutation(opts.rows)
    train_rows, test_rows = rows[: int(0.75 * opts.rows)], rows[int(0.75 * opts.rows) :]
    scale_x, scale_y = Standardiser().fit(mixes[train_rows]), Standardiser().fit(strength[train_rows])
    train_x, train_y = scale_x(mixes[train_rows]), scale_y(strength[train_rows])
    test_x, test_y = scale_x(mixes[test_rows]), scale_y(strength[test_rows])

    net = StrengthNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=opts.lr)
    for epoch in range(opts.epochs):
        net.train()
        for part in torch.randperm(len(train_x)).split(50):
            loss = nn.functional.mse_loss(net(train_x[part]), train_y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            error = (net(test_x) - test_y).abs().mean().item() * float(scale_y.scale)
        print(f"epoch {epoch}: train loss {loss.item():.4f}, test error {error:.2f} MPa")


if __name__ == "__main__":
    main()
