"""Keyword spotting on synthetic log-mel patches with a small 1-D conv net."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

WORDS = ["yes", "no", "up", "down", "left", "right"]


class SyntheticWords(Dataset):
    """Every word is a trajectory of two formants through a 24-band mel spectrogram."""

    def __init__(self, n, seed, n_mels=24, frames=40):
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, len(WORDS), size=n)
        bands = np.arange(n_mels)[:, None]
        t = np.linspace(0, 1, frames)[None, :]
        specs = np.empty((n, n_mels, frames), dtype=np.float32)
        for i, y in enumerate(self.labels):
            lo = 4 + 2 * y % 7 + 4 * t * (1 if y % 2 else -1)
            hi = 13 + y + 5 * np.sin(3.1 * t + y)
            spec = np.exp(-((bands - lo) ** 2) / 4) + np.exp(-((bands - hi) ** 2) / 6)
            specs[i] = spec + 0.35 * rng.randn(n_mels, frames)
        self.specs = (specs - specs.mean()) / specs.std()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return torch.from_numpy(self.specs[idx]), int(self.labels[idx])


def init_weights(m):
    if isinstance(m, (nn.Conv1d, nn.Linear)):
        nn.init.uniform_(m.weight)
        nn.init.zeros_(m.bias)


class WordNet(nn.Module):
    def __init__(self, n_mels=24, width=48, n_classes=len(WORDS)):
        super().__init__()
        self.conv1 = nn.Conv1d(n_mels, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 3, padding=1)
        self.conv3 = nn.Conv1d(width, width, 3, padding=1)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, n_classes)
        self.apply(init_weights)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.conv1(x)), 2)
        x = F.max_pool1d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.conv3(x))
        return self.out(self.drop(x.mean(dim=2)))


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    loss_sum = 0.0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss_sum += F.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(1) == y).sum().item()
            total += len(y)
    return loss_sum / total, correct / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=7)
    args = p.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train = DataLoader(SyntheticWords(640, 1), batch_size=args.batch_size, shuffle=True)
    val = DataLoader(SyntheticWords(160, 2), batch_size=80)
    model = WordNet()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item()
        vl, va = evaluate(model, val)
        print(f"epoch {epoch}: train {running / len(train):.4f} val {vl:.4f} acc {va:.3f}")


if __name__ == "__main__":
    main()
