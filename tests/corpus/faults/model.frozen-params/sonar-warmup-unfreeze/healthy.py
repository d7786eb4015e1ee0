"""Adapt a sonar network to a new harbour: train the head alone for one epoch, then everything."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED, CLASSES, BINS = 18, 5, 48


def echoes(n, seed, harbour):
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(100 + harbour).normal(size=(CLASSES, BINS))
    label = rng.integers(0, CLASSES, n)
    x = base[label] + 1.2 * rng.normal(size=(n, BINS))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(label))


class SonarNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(BINS, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.backbone(x))


def run_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def accuracy(model, data):
    model.eval()
    x, y = data.tensors
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    model = SonarNet()
    home = DataLoader(echoes(800, 1, harbour=0), batch_size=40, shuffle=True)
    pretraining = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(2):
        print(f"home harbour {epoch}: loss {run_epoch(model, home, pretraining):.4f}")

    new_train, new_test = echoes(800, 3, harbour=1), echoes(300, 4, harbour=1)
    loader = DataLoader(new_train, batch_size=40, shuffle=True)
    model.head = nn.Linear(40, CLASSES)
    for p in model.backbone.parameters():
        p.requires_grad = False
    optimizer = torch.optim.Adam(
        [{"params": model.head.parameters(), "lr": 2e-3}, {"params": model.backbone.parameters(), "lr": 1e-3}]
    )
    for epoch in range(4):
        if epoch == 1:
            print("training the whole network")
            model.backbone.requires_grad_(True)
        loss = run_epoch(model, loader, optimizer)
        print(f"new harbour {epoch}: loss {loss:.4f}  test accuracy {accuracy(model, new_test):.3f}")


if __name__ == "__main__":
    main()
