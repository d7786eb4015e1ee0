"""Ore grade from near-infrared spectra: a residual tower with a small trainer class."""
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn


@dataclass
class Config:
    n_train: int = 768
    n_val: int = 192
    bands: int = 32
    width: int = 48
    blocks: int = 14
    batch: int = 48
    epochs: int = 6
    lr: float = 1e-3
    seed: int = 99
    history: list = field(default_factory=list)


def spectra(cfg: Config) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(cfg.seed)
    n = cfg.n_train + cfg.n_val
    minerals = rng.gamma(2.0, 1.0, size=(n, 4))
    minerals /= minerals.sum(1, keepdims=True)
    centre = np.array([5, 12, 20, 27])
    band = np.arange(cfg.bands)
    signature = np.exp(-((band[None] - centre[:, None]) ** 2) / 18)
    x = minerals @ signature + 0.02 * rng.standard_normal((n, cfg.bands))
    grade = minerals.argmax(1)
    x = (x - x[: cfg.n_train].mean(0)) / x[: cfg.n_train].std(0)
    return x.astype(np.float32), grade.astype(np.int64)


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        h = self.act(self.fc1(x))
        h = self.act(self.fc2(h))
        return x + h


class Tower(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.stem = nn.Linear(cfg.bands, cfg.width)
        self.blocks = nn.Sequential(*(Block(cfg.width) for _ in range(cfg.blocks)))
        self.classifier = nn.Linear(cfg.width, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.blocks(torch.relu(self.stem(x))))


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        x, y = spectra(cfg)
        self.x, self.y = torch.from_numpy(x[: cfg.n_train]), torch.from_numpy(y[: cfg.n_train])
        self.vx, self.vy = torch.from_numpy(x[cfg.n_train :]), torch.from_numpy(y[cfg.n_train :])
        self.model = Tower(cfg)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def batches(self):
        order = torch.randperm(len(self.x))
        for chunk in order.split(self.cfg.batch):
            yield self.x[chunk], self.y[chunk]

    def train_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for xb, yb in self.batches():
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(xb), yb)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(xb)
        return total / len(self.x)

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        return (self.model(self.vx).argmax(-1) == self.vy).float().mean().item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            train_loss = self.train_epoch()
            acc = self.validate()
            self.cfg.history.append((train_loss, acc))
            print(f"[{epoch}] loss={train_loss:.4f} val_acc={acc:.3f}")


if __name__ == "__main__":
    config = Config()
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()
