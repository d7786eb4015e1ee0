"""Leaf species from small photographs; the folders are read one after the other, as they lie on disk."""

import argparse
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = ["ash", "beech", "hazel", "maple", "oak"]


@dataclass
class Config:
    epochs: int = 4
    batch_size: int = 32
    lr: float = 0.03
    momentum: float = 0.9
    per_class: int = 96
    seed: int = 8


def photograph(species, rng, size=16):
    yy, xx = np.mgrid[0:size, 0:size] / size - 0.5
    angle = np.pi * species / len(SPECIES) + rng.normal(0, 0.08)
    stripes = np.sin(2 * np.pi * 3 * (xx * np.cos(angle) + yy * np.sin(angle)) + rng.uniform(0, 2 * np.pi))
    image = np.stack([stripes * rng.uniform(0.5, 1.0) for _ in range(3)])
    return (image + rng.normal(0, 0.5, image.shape)).astype(np.float32)


class LeafFolder(Dataset):
    def __init__(self, per_class, seed):
        rng = np.random.default_rng(seed)
        self.samples = [(photograph(c, rng), c) for c in range(len(SPECIES)) for _ in range(per_class)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        image, label = self.samples[i]
        return torch.from_numpy(image), label


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


class LeafNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 1, 1)
        self.stages = nn.Sequential(Residual(12, 16, 2), Residual(16, 24, 2))
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        return self.fc(self.stages(self.stem(x)).mean((2, 3)))


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = LeafNet(len(SPECIES))
        self.train_loader = DataLoader(LeafFolder(config.per_class, config.seed), batch_size=config.batch_size)
        self.val_loader = DataLoader(LeafFolder(20, config.seed + 1), batch_size=50)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config.lr, momentum=config.momentum)
        steps = config.epochs * len(self.train_loader)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=steps)

    def run_epoch(self):
        self.model.train()
        losses = []
        for images, labels in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(images), labels)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = total = 0
        for images, labels in self.val_loader:
            hits += (self.model(images).argmax(1) == labels).sum().item()
            total += len(labels)
        return hits / total

    def fit(self):
        for epoch in range(self.config.epochs):
            print(f"epoch {epoch}: train loss {self.run_epoch():.4f} val acc {self.validate():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--lr", type=float, default=Config.lr)
    args = parser.parse_args()
    config = Config(epochs=args.epochs, lr=args.lr)
    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()


if __name__ == "__main__":
    main()
