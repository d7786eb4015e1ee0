"""Detect which of four gestures a wrist sensor saw: LSTM over 20 time steps, SGD, gradient accumulation."""
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    hidden: int = 32
    gestures: int = 4
    channels: int = 3
    steps: int = 20
    micro_batch: int = 16
    accumulate: int = 4
    epochs: int = 5
    lr: float = 0.4
    momentum: float = 0.9
    seed: int = 64


def record(cfg, n):
    gesture = torch.randint(cfg.gestures, (n,))
    t = torch.arange(cfg.steps) / cfg.steps
    frequency = 1.0 + gesture.float()
    phase = torch.rand(n, 1) * 0.8
    wave = torch.sin(2 * torch.pi * (frequency[:, None] * t + phase))
    axes = torch.stack([wave, wave.roll(2, dims=1), -wave], dim=-1)
    return TensorDataset((axes + 0.4 * torch.randn_like(axes)) / 0.81, gesture)


class GestureLSTM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.lstm = nn.LSTM(cfg.channels, cfg.hidden, batch_first=True)
        self.classify = nn.Linear(cfg.hidden, cfg.gestures)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.classify(h[-1])


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.train_loader = DataLoader(record(cfg, 1280), cfg.micro_batch, shuffle=True)
        self.val_loader = DataLoader(record(cfg, 320), 160)
        self.model = GestureLSTM(cfg)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for i, (x, y) in enumerate(self.train_loader, start=1):
            loss = self.criterion(self.model(x), y)
            total += loss.item()
            (loss / self.cfg.accumulate).backward()
            if i % self.cfg.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        return hits / len(self.val_loader.dataset)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            print(f"epoch {epoch} loss {self.train_epoch():.4f} accuracy {self.evaluate():.3f}")


if __name__ == "__main__":
    config = Config()
    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()
