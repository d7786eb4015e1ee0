"""Keyword spotting on synthetic filterbanks: strided convolutions over time, then a GRU."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Keywords(Dataset):
    """A keyword is a rising or falling tone followed by a rising or falling tone: four classes."""

    def __init__(self, n, bands=12, frames=32, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, size=n)
        self.features = rng.normal(0, 0.4, size=(n, bands, frames)).astype(np.float32)
        half = frames // 2
        for feature, label in zip(self.features, self.labels):
            for part, rising in enumerate((label // 2, label % 2)):
                low = rng.integers(0, 3)
                for t in range(half):
                    tone = t if rising else half - 1 - t
                    feature[low + tone * (bands - 3) // half, part * half + t] += 2.0
        self.features = (self.features - self.features.mean()) / self.features.std()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.features[i]), int(self.labels[i])


class Spotter(nn.Module):
    def __init__(self, bands=12, channels=24, hidden=32):
        super().__init__()
        self.frontend = nn.Sequential(
            nn.Conv1d(bands, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.rnn = nn.GRU(channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 4)

    def forward(self, x):
        z = self.frontend(x)
        n, c, t = z.shape
        z = z.reshape(n, t, c)
        _, last = self.rnn(z)
        return self.head(last[-1])


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=12)
    a = ap.parse_args()
    seed_all(a.seed)

    train = DataLoader(Keywords(800, seed=a.seed), a.batch_size, shuffle=True)
    test = DataLoader(Keywords(200, seed=a.seed + 1), 200)
    net = Spotter()
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(a.epochs):
        net.train()
        seen, total = 0, 0.0
        for x, y in train:
            opt.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            opt.step()
            seen += len(y)
            total += loss.item() * len(y)
        net.eval()
        with torch.no_grad():
            acc = np.mean([(net(x).argmax(1) == y).float().mean().item() for x, y in test])
        print(f"epoch {epoch} loss {total / seen:.4f} test acc {acc:.3f}")


main()
