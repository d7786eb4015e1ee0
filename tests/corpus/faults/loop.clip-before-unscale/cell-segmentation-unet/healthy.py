"""Segment bright cells in noisy microscopy tiles with a two-level U-Net in mixed precision."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    tiles: int = 256
    size: int = 24
    batch_size: int = 16
    epochs: int = 5
    lr: float = 0.05
    momentum: float = 0.9
    max_norm: float = 1.0
    log_every: int = 10
    seed: int = 21


class CellTiles(Dataset):
    def __init__(self, count: int, size: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        ys, xs = np.mgrid[0:size, 0:size]
        images, masks = [], []
        for _ in range(count):
            mask = np.zeros((size, size), dtype=bool)
            for _ in range(rng.integers(2, 5)):
                cy, cx = rng.uniform(3, size - 3, 2)
                radius = rng.uniform(2.5, 5.0)
                mask |= (ys - cy) ** 2 + (xs - cx) ** 2 < radius**2
            image = mask * 1.2 + rng.normal(0.0, 0.5, (size, size))
            images.append((image - image.mean()) / image.std())
            masks.append(mask)
        self.images = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
        self.masks = torch.tensor(np.stack(masks), dtype=torch.float32).unsqueeze(1)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.masks[index]


def double_conv(channels_in: int, channels_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
        nn.GroupNorm(4, channels_out),
        nn.ReLU(inplace=True),
        nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False),
        nn.GroupNorm(4, channels_out),
        nn.ReLU(inplace=True),
    )


class SmallUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1 = double_conv(1, 8)
        self.down2 = double_conv(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.merge = double_conv(16, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = self.down1(x)
        low = self.down2(F.max_pool2d(high, 2))
        return self.out(self.merge(torch.cat([high, self.up(low)], dim=1)))


def soft_dice(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    probability = logits.sigmoid()
    overlap = (probability * mask).sum(dim=(1, 2, 3))
    total = probability.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
    return (1.0 - (2.0 * overlap + 1.0) / (total + 1.0)).mean()


class Trainer:
    def __init__(self, cfg: Config) -> None:
        self.cfg = cfg
        self.model = SmallUNet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
        self.train_loader = DataLoader(CellTiles(cfg.tiles, cfg.size, 1), batch_size=cfg.batch_size, shuffle=True)
        self.valid_loader = DataLoader(CellTiles(64, cfg.size, 2), batch_size=64)
        self.global_step = 0

    def compute_loss(self, images: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            logits = self.model(images)
        logits = logits.float()
        return F.binary_cross_entropy_with_logits(logits, masks) + soft_dice(logits, masks)

    def training_step(self, images: torch.Tensor, masks: torch.Tensor) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.compute_loss(images, masks)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.global_step += 1
        if self.global_step % self.cfg.log_every == 0:
            print(f"step {self.global_step}: loss {loss.item():.4f}  grad norm {norm.item():.3f}")
        return loss.item()

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        loss = sum(self.compute_loss(images, masks).item() for images, masks in self.valid_loader) / len(self.valid_loader)
        self.model.train()
        return loss

    def fit(self) -> None:
        for epoch in range(self.cfg.epochs):
            losses = [self.training_step(images, masks) for images, masks in self.train_loader]
            print(f"epoch {epoch}: train {np.mean(losses):.4f}  valid {self.validate():.4f}")


if __name__ == "__main__":
    config = Config()
    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    Trainer(config).fit()
