#!/usr/bin/env python
"""Spoken digit classification from mel-like spectrograms with a small 1-D conv net."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--accum-steps", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--num-digits", type=int, default=6)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def synth_spectrograms(n, digits, seed, mels=20, frames=40):
    """Two formants per digit that glide over the utterance."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, digits, n)
    t = np.linspace(0, 1, frames)
    grid = np.arange(mels)[:, None]
    x = np.empty((n, mels, frames), dtype=np.float32)
    for i, d in enumerate(y):
        f1 = 3 + d * 1.5 + 2 * t * (1 if d % 2 else -1) + rng.randn() * 0.4
        f2 = 16 - d + 2 * np.sin(3 * t + d) + rng.randn() * 0.4
        x[i] = np.exp(-0.5 * (grid - f1) ** 2) + np.exp(-0.5 * (grid - f2) ** 2) + 0.35 * rng.randn(mels, frames)
    return x, y


class DigitNet(nn.Module):
    def __init__(self, mels, digits):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(mels, 32, 5, stride=2, padding=2),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
            nn.Conv1d(32, 48, 5, stride=2, padding=2),
            nn.GroupNorm(4, 48),
            nn.ReLU(),
        )
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(48, digits)

    def forward(self, x):
        return self.classifier(self.dropout(self.features(x).mean(dim=-1)))


def train_one_epoch(model, loader, criterion, optimizer, args):
    model.train()
    total, count = 0.0, 0
    optimizer.zero_grad()
    for step, (specs, labels) in enumerate(loader, start=1):
        loss = criterion(model(specs), labels)
        total += loss.item() * len(labels)
        count += len(labels)
        (loss / args.accum_steps).backward()
        if step % args.accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    return total / count


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum((model(specs).argmax(1) == labels).sum().item() for specs, labels in loader)
    return right / len(loader.dataset)


def main():
    args = get_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    x_train, y_train = synth_spectrograms(640, args.num_digits, seed=10)
    x_val, y_val = synth_spectrograms(160, args.num_digits, seed=11)
    mean, std = x_train.mean(), x_train.std()
    train_set = TensorDataset(torch.from_numpy((x_train - mean) / std), torch.from_numpy(y_train))
    val_set = TensorDataset(torch.from_numpy((x_val - mean) / std), torch.from_numpy(y_val))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=32)

    model = DigitNet(20, args.num_digits)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)

    for epoch in range(1, args.epochs + 1):
        loss = train_one_epoch(model, train_loader, criterion, optimizer, args)
        print(f"[{epoch}/{args.epochs}] train loss {loss:.4f}  val acc {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
