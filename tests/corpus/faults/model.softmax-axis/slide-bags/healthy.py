"""Attention-based multiple instance learning: a slide is positive when any of its tiles is."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_slides(num, tiles, dim, generator):
    direction = torch.zeros(dim)
    direction[:4] = 1.5
    features = torch.randn(num, tiles, dim, generator=generator)
    labels = torch.randint(0, 2, (num,), generator=generator)
    for i in range(num):
        if labels[i]:
            count = int(torch.randint(1, 4, (1,), generator=generator))
            where = torch.randperm(tiles, generator=generator)[:count]
            features[i, where] += direction
    return TensorDataset(features, labels.float())


class GatedAttentionPool(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.v = nn.Linear(dim, hidden)
        self.u = nn.Linear(dim, hidden)
        self.w = nn.Linear(hidden, 1)

    def forward(self, tiles):
        energy = self.w(torch.tanh(self.v(tiles)) * torch.sigmoid(self.u(tiles)))
        weights = torch.softmax(energy, dim=1)
        return (weights * tiles).sum(dim=1), weights


class SlideModel(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.pool = GatedAttentionPool(hidden, 24)
        self.classify = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 1))

    def forward(self, tiles):
        pooled, weights = self.pool(self.encode(tiles))
        return self.classify(pooled).squeeze(-1), weights


def evaluate(model, loader, criterion):
    model.eval()
    loss, right, count = 0.0, 0, 0
    with torch.no_grad():
        for tiles, labels in loader:
            logits, _ = model(tiles)
            loss += criterion(logits, labels).item() * len(labels)
            right += ((logits > 0).float() == labels).sum().item()
            count += len(labels)
    return loss / count, right / count


def run(args):
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed + 1)
    train = DataLoader(make_slides(800, args.tiles, 32, generator), batch_size=32, shuffle=True)
    valid = DataLoader(make_slides(200, args.tiles, 32, generator), batch_size=100)
    model = SlideModel()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        for tiles, labels in train:
            optimizer.zero_grad()
            logits, _ = model(tiles)
            loss = criterion(logits, labels)
            loss.backward()
            optimizer.step()
        scheduler.step()
        val_loss, val_acc = evaluate(model, valid, criterion)
        print(f"[{epoch + 1}/{args.epochs}] train {loss.item():.3f} val {val_loss:.3f} acc {val_acc:.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--epochs", type=int, default=6)
    cli.add_argument("--tiles", type=int, default=16)
    cli.add_argument("--lr", type=float, default=2e-3)
    cli.add_argument("--seed", type=int, default=17)
    run(cli.parse_args())
