"""Small vision transformer that tells leaf diseases apart from 24x24 crops."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    image: int = 24
    patch: int = 6
    dim: int = 48
    heads: int = 4
    depth: int = 3
    classes: int = 4
    batch: int = 32
    epochs: int = 5
    lr: float = 1e-3
    seed: int = 7


def make_leaves(count, cfg, rng):
    """Every disease is a texture of its own direction and frequency, over a noisy leaf."""
    grid_y, grid_x = np.mgrid[0 : cfg.image, 0 : cfg.image] / cfg.image
    labels = rng.integers(0, cfg.classes, count)
    images = rng.normal(0, 0.6, (count, 3, cfg.image, cfg.image))
    for i, label in enumerate(labels):
        angle = label * np.pi / cfg.classes
        phase = rng.uniform(0, 2 * np.pi)
        wave = np.sin(2 * np.pi * 3 * (np.cos(angle) * grid_x + np.sin(angle) * grid_y) + phase)
        images[i, label % 3] += wave
        images[i, (label + 1) % 3] += 0.5 * wave
    return torch.tensor(images, dtype=torch.float32), torch.tensor(labels)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, dropout=0.1)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        tokens = (cfg.image // cfg.patch) ** 2
        self.patchify = nn.Conv2d(3, cfg.dim, cfg.patch, stride=cfg.patch)
        self.cls = nn.Parameter(torch.randn(1, 1, cfg.dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, tokens + 1, cfg.dim) * 0.02)
        self.blocks = nn.ModuleList(Block(cfg.dim, cfg.heads) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, images):
        x = self.patchify(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], dim=1) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        rng = np.random.default_rng(cfg.seed)
        self.train_loader = DataLoader(TensorDataset(*make_leaves(640, cfg, rng)), batch_size=cfg.batch, shuffle=True)
        self.val_loader = DataLoader(TensorDataset(*make_leaves(192, cfg, rng)), batch_size=64)
        self.model = ViT(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for images, labels in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(images), labels)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(labels)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right, total = 0, 0.0
        for images, labels in self.val_loader:
            logits = self.model(images)
            total += self.criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(-1) == labels).sum().item()
        size = len(self.val_loader.dataset)
        return total / size, right / size

    def fit(self):
        for epoch in range(self.cfg.epochs):
            train_loss = self.train_epoch()
            val_loss, accuracy = self.validate()
            print(f"epoch {epoch}: train {train_loss:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    config = Config()
    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()
