"""Dialect from formant tracks; one function per epoch, loaders made where they are used."""
import functools
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 606


@functools.cache
def vowels(split):
    rng = np.random.default_rng({"train": 1, "dev": 2}[split])
    size = {"train": 800, "dev": 240}[split]
    dialect = rng.integers(0, 5, size)
    glide = np.linspace(0, 1, 16)
    onset = np.array([[0.2, 1.1], [0.6, 0.4], [-0.5, 0.8], [-0.3, -0.9], [0.9, -0.6]])[dialect]
    slope = np.array([[0.8, -0.5], [-0.7, 0.6], [0.5, 0.7], [-0.6, -0.2], [0.1, 0.9]])[dialect]
    tracks = onset[:, None, :] + glide[None, :, None] * slope[:, None, :] + rng.normal(0, 0.7, (size, 16, 2))
    return TensorDataset(torch.tensor(tracks, dtype=torch.float32), torch.tensor(dialect))


class DialectNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 5)

    def forward(self, tracks):
        states, _ = self.lstm(tracks)
        return self.out(states.mean(dim=1))


def train_epoch(model, optimizer, generator):
    loader = DataLoader(vowels("train"), batch_size=32, shuffle=True, generator=generator)
    model.train()
    total = 0.0
    for tracks, dialect in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tracks), dialect)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def dev_accuracy(model):
    model.eval()
    tracks, dialect = vowels("dev").tensors
    return (model(tracks).argmax(-1) == dialect).float().mean().item()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    model = DialectNet()
    optimizer = torch.optim.NAdam(model.parameters(), lr=4e-3)
    generator = torch.Generator().manual_seed(SEED)
    for epoch in range(4):
        loss = train_epoch(model, optimizer, generator)
        print(f"epoch {epoch} loss {loss:.4f} dev {dev_accuracy(model):.3f}")


if __name__ == "__main__":
    main()
