"""Classify valve states from short vibration windows with a small 1-D convnet."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    num_classes: int = 4
    window: int = 96
    channels: int = 24
    batch_size: int = 48
    epochs: int = 6
    lr: float = 2e-3
    seed: int = 11


def make_windows(n, cfg, rng):
    t = np.linspace(0, 1, cfg.window, dtype=np.float32)
    labels = rng.integers(0, cfg.num_classes, size=n)
    freq = np.array([4.0, 7.0, 11.0, 16.0])[labels]
    phase = rng.uniform(0, 2 * np.pi, size=n)
    clean = np.sin(2 * np.pi * freq[:, None] * t[None] + phase[:, None])
    second = np.cos(2 * np.pi * 0.5 * freq[:, None] * t[None] + phase[:, None])
    x = np.stack([clean, second], axis=1) + rng.normal(0, 0.6, size=(n, 2, cfg.window))
    x = (x - x.mean(axis=(0, 2), keepdims=True)) / x.std(axis=(0, 2), keepdims=True)
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(labels).long()


class ValveNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        c = cfg.channels
        self.conv1 = nn.Conv1d(2, c, kernel_size=7, padding=3)
        self.conv2 = nn.Conv1d(c, c, kernel_size=5, stride=2, padding=2)
        self.conv3 = nn.Conv1d(c, 2 * c, kernel_size=5, stride=2, padding=2)
        self.fc = nn.Linear(2 * c, cfg.num_classes)
        self.reset_parameters()

    def reset_parameters(self):
        for conv in (self.conv1, self.conv2, self.conv3):
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            nn.init.constant_(conv.bias, -5.0)
        nn.init.xavier_uniform_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return self.fc(x.mean(dim=-1))


class Trainer:
    def __init__(self, cfg, model, train_loader, val_loader):
        self.cfg, self.model = cfg, model
        self.train_loader, self.val_loader = train_loader, val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    def train_epoch(self):
        self.model.train()
        total, count = 0.0, 0
        for x, y in self.train_loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
            count += len(y)
        return total / count

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits, count = 0, 0
        for x, y in self.val_loader:
            hits += (self.model(x).argmax(-1) == y).sum().item()
            count += len(y)
        return hits / count

    def fit(self):
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            print(f"epoch {epoch} train_loss {loss:.4f} val_acc {self.validate():.3f}")


def main():
    cfg = Config()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    train = TensorDataset(*make_windows(768, cfg, rng))
    val = TensorDataset(*make_windows(192, cfg, rng))
    trainer = Trainer(
        cfg,
        ValveNet(cfg),
        DataLoader(train, batch_size=cfg.batch_size, shuffle=True),
        DataLoader(val, batch_size=96),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
