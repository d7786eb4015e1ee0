"""Which shape lies left of which? Convolutional stem, feature map to tokens, TransformerEncoder, CLS read-out."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Settings:
    seed: int = 31
    image: int = 24
    width: int = 32
    heads: int = 4
    layers: int = 2
    batch: int = 48
    epochs: int = 4
    lr: float = 2e-3
    train_images: int = 1440


def draw_scenes(count, size, seed):
    rng = np.random.default_rng(seed)
    images = 0.2 * rng.standard_normal((count, 1, size, size))
    labels = rng.integers(0, 4, count)
    for i, label in enumerate(labels):
        y = int(rng.integers(1, size - 7))
        x = int(rng.integers(1, size - 7))
        patch = images[i, 0, y : y + 6, x : x + 6]
        if label == 0:
            patch[2:4] += 2.0
        elif label == 1:
            patch[:, 2:4] += 2.0
        elif label == 2:
            patch += 2.0 * np.eye(6)
        else:
            patch += 2.0 * np.eye(6)[::-1]
    return torch.tensor(images, dtype=torch.float32), torch.tensor(labels)


class Stem(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width // 2, 3, stride=2, padding=1),
            nn.GroupNorm(4, width // 2),
            nn.GELU(),
            nn.Conv2d(width // 2, width, 3, stride=2, padding=1),
        )

    def forward(self, images):
        return self.layers(images)


class SceneClassifier(nn.Module):
    def __init__(self, cfg: Settings):
        super().__init__()
        self.stem = Stem(cfg.width)
        side = cfg.image // 4
        self.cls = nn.Parameter(torch.zeros(1, 1, cfg.width))
        self.pos = nn.Parameter(torch.empty(1, side * side, cfg.width))
        nn.init.trunc_normal_(self.cls, std=0.02)
        nn.init.trunc_normal_(self.pos, std=0.02)
        layer = nn.TransformerEncoderLayer(
            cfg.width, cfg.heads, 2 * cfg.width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, norm=nn.LayerNorm(cfg.width), enable_nested_tensor=False)
        self.head = nn.Linear(cfg.width, 4)

    def forward(self, images):
        grid = self.stem(images)
        b, c, h, w = grid.shape
        tokens = grid.view(b, c, h * w).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(b, -1, -1), tokens + self.pos], dim=1)
        return self.head(self.encoder(tokens)[:, 0])


class Trainer:
    def __init__(self, cfg: Settings):
        self.cfg = cfg
        self.model = SceneClassifier(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.0)
        self.loss = nn.CrossEntropyLoss()
        self.train_loader = DataLoader(
            TensorDataset(*draw_scenes(cfg.train_images, cfg.image, cfg.seed)), batch_size=cfg.batch, shuffle=True
        )
        self.val_loader = DataLoader(TensorDataset(*draw_scenes(192, cfg.image, cfg.seed + 1)), batch_size=96)

    def epoch(self):
        self.model.train()
        total = 0.0
        for images, labels in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.loss(self.model(images), labels)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = [(self.model(images).argmax(-1) == labels).float().mean() for images, labels in self.val_loader]
        return torch.stack(hits).mean().item()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            print(f"epoch {epoch} train {self.epoch():.4f} val acc {self.validate():.3f}")


if __name__ == "__main__":
    settings = Settings()
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)
    Trainer(settings).fit()
