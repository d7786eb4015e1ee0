"""Tell olive oils apart by their near-infrared spectra."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def spectra(n, bands=60, regions=4, seed=3):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, regions, n)
    grid = np.linspace(0, 1, bands)
    peaks = np.array([0.2, 0.4, 0.6, 0.8])[label][:, None]
    x = np.exp(-((grid - peaks) ** 2) / 0.01) + 0.4 * rng.normal(size=(n, bands))
    x = (x - x.mean(0)) / x.std(0)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(label))


class OilNet(nn.Module):
    def __init__(self, bands=60, regions=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(bands, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU()
        )
        self.out = nn.Linear(32, regions)

    def forward(self, x):
        return self.out(self.body(x))


def main():
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    train, valid = random_split(spectra(1205), [961, 244])
    train_loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid, batch_size=244)
    net = OilNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(3):
        net.train()
        total = 0.0
        for x, y in train_loader:
            loss = loss_fn(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            x, y = next(iter(valid_loader))
            right = (net(x).argmax(1) == y).float().mean().item()
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, accuracy {right:.3f}")


if __name__ == "__main__":
    main()
