"""Land cover from four-band reflectance tiles."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["water", "forest", "crop", "urban"]
SIGNATURES = np.array([[900, 800, 500, 300], [400, 700, 450, 3200], [700, 1100, 900, 2500], [1500, 1600, 1700, 2100]], dtype=np.float32)


class Scale:
    def __call__(self, tile):
        return tile.astype(np.float32) / 10000.0


class NormalizeBands:
    def __init__(self, mean, std):
        self.mean = np.asarray(mean, dtype=np.float32).reshape(-1, 1, 1)
        self.std = np.asarray(std, dtype=np.float32).reshape(-1, 1, 1)

    def __call__(self, tile):
        return (tile - self.mean) / self.std


class RandomFlip:
    def __call__(self, tile):
        if random.random() < 0.5:
            tile = tile[:, :, ::-1]
        if random.random() < 0.5:
            tile = tile[:, ::-1, :]
        return np.ascontiguousarray(tile)


class Chain:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, tile):
        for step in self.steps:
            tile = step(tile)
        return torch.from_numpy(tile)


class Tiles(Dataset):
    def __init__(self, tiles, labels, transform):
        self.tiles, self.labels, self.transform = tiles, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.tiles[index]), int(self.labels[index])


def acquire(count, rng):
    labels = rng.integers(0, 4, count)
    haze = rng.normal(0, 250, (count, 1, 1, 1))
    tiles = SIGNATURES[labels][:, :, None, None] + haze + rng.normal(0, 500, (count, 4, 12, 12))
    return np.clip(tiles, 0, 10000).astype(np.uint16), labels


def build_model():
    return nn.Sequential(
        nn.Conv2d(4, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 4),
    )


def evaluate(model, loader, criterion):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += criterion(out, y).item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)

    rng = np.random.default_rng(1)
    train_tiles, train_labels = acquire(640, rng)
    val_tiles, val_labels = acquire(200, rng)
    mean = (train_tiles / 10000.0).mean(axis=(0, 2, 3))
    std = (train_tiles / 10000.0).std(axis=(0, 2, 3))

    train_tf = Chain(Scale(), NormalizeBands(mean, std), RandomFlip())
    val_tf = Chain(Scale(), NormalizeBands(mean, std))
    train_loader = DataLoader(Tiles(train_tiles, train_labels, train_tf), batch_size=32, shuffle=True)
    val_loader = DataLoader(Tiles(val_tiles, val_labels, val_tf), batch_size=64)

    model = build_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * 10, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        val_loss, val_acc = evaluate(model, val_loader, criterion)
        print(f"[{epoch + 1}/{args.epochs}] last train loss {loss.item():.4f} val loss {val_loss:.4f} val acc {val_acc:.3f}")


if __name__ == "__main__":
    main()
