"""Classify which appliance is running from one minute of mains power."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--d-model", type=int, default=32)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


def synth_traces(n, length, rng):
    kinds = rng.integers(0, 4, n)
    t = np.arange(length)
    out = np.zeros((n, length))
    for row, k in enumerate(kinds):
        phase = rng.uniform(0, 2 * np.pi)
        period = (6, 12, 24, 40)[k] * rng.uniform(0.9, 1.1)
        out[row] = np.sin(2 * np.pi * t / period + phase) + 0.5 * rng.standard_normal(length)
    out = (out - out.mean()) / out.std()
    return torch.tensor(out, dtype=torch.float32), torch.tensor(kinds)


class LoadEncoder(nn.Module):
    def __init__(self, d_model, heads, layers, classes=4, patch=6, length=60):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, d_model)
        self.pos = nn.Parameter(torch.randn(1, length // patch, d_model) * 0.02)
        layer = nn.TransformerEncoderLayer(d_model, heads, 4 * d_model, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, classes)

    def forward(self, x):
        x = x.unfold(1, self.patch, self.patch)
        h = self.encoder(self.embed(x) + self.pos)
        return self.out(self.norm(h.mean(dim=1)))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        hits += (model(x).argmax(-1) == y).sum().item()
        total += len(y)
    return hits / total


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    train = TensorDataset(*synth_traces(800, 60, rng))
    valid = TensorDataset(*synth_traces(200, 60, rng))
    train_loader = DataLoader(train, args.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid, 100)

    model = LoadEncoder(args.d_model, args.heads, args.layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch} loss {running / len(train_loader):.4f} val acc {accuracy(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
