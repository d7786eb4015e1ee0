"""Small vision transformer for 28x28 greyscale garment thumbnails."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class ViTConfig:
    image: int = 28
    patch: int = 7
    dim: int = 48
    depth: int = 2
    heads: int = 4
    classes: int = 5
    lr: float = 1e-3
    batch: int = 32
    epochs: int = 4
    seed: int = 1234


class Garments(Dataset):
    """Bright garment silhouettes on a dark, noisy background; stored as uint8 like the original archive."""

    def __init__(self, count: int, classes: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, classes, count)
        self.images = np.stack([self.draw(rng, label) for label in self.labels])

    @staticmethod
    def draw(rng: np.random.Generator, label: int) -> np.ndarray:
        image = rng.normal(30, 12, (28, 28))
        dy, dx = rng.integers(-2, 3, 2)
        rows, cols = np.mgrid[0:28, 0:28]
        rows, cols = rows - 14 - dy, cols - 14 - dx
        shapes = [
            (abs(rows) < 9) & (abs(cols) < 5),
            (abs(rows) < 4) & (abs(cols) < 11),
            (abs(rows) < 10) & (abs(cols) < 8) & ~((abs(cols) < 2) & (rows > -4)),
            (rows > 2) & (rows < 9) & (abs(cols) < 10),
            (abs(cols) < 3 + (rows + 10) / 2) & (abs(rows) < 10),
        ]
        image[shapes[label]] += rng.uniform(120, 190)
        return image.clip(0, 255).astype(np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = torch.from_numpy(self.images[index]).float()
        return (image[None] / 255 - 0.29) / 0.28, int(self.labels[index])


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, cfg: ViTConfig) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, cfg.dim, cfg.patch, stride=cfg.patch)
        tokens = (cfg.image // cfg.patch) ** 2
        self.cls = nn.Parameter(torch.randn(1, 1, cfg.dim) * 0.02)
        self.position = nn.Parameter(torch.randn(1, tokens + 1, cfg.dim) * 0.02)
        self.blocks = nn.ModuleList(Block(cfg.dim, cfg.heads) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class Runner:
    def __init__(self, cfg: ViTConfig) -> None:
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.train_loader = DataLoader(Garments(800, cfg.classes, 0), batch_size=cfg.batch, shuffle=True)
        self.val_loader = DataLoader(Garments(200, cfg.classes, 1), batch_size=100)
        self.model = TinyViT(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self) -> None:
        for epoch in range(1, self.cfg.epochs + 1):
            self.model.train()
            losses = []
            for images, labels in self.train_loader:
                loss = self.criterion(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch} train loss {np.mean(losses):.3f} val acc {self.validate():.3f}")

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        correct = total = 0
        for images, labels in self.val_loader:
            correct += (self.model(images).argmax(1) == labels).sum().item()
            total += len(labels)
        return correct / total


if __name__ == "__main__":
    Runner(ViTConfig()).fit()
