import random
import time
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ScalerConfig:
    init_scale: float = 1024.0
    growth_factor: float = 8.0
    backoff_factor: float = 0.5
    growth_interval: int = 2


@dataclass
class Config:
    steps: int = 80
    batch: int = 8
    width: int = 12
    lr: float = 2e-3
    seed: int = 6
    scaler: ScalerConfig = field(default_factory=ScalerConfig)


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down1 = nn.Conv2d(1, width, 3, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, x):
        a = F.leaky_relu(self.down1(x), 0.1)
        b = F.leaky_relu(self.down2(a), 0.1)
        b = F.leaky_relu(self.middle(b), 0.1)
        return self.out(torch.cat([a, self.up(b)], dim=1))


class Scratches:
    """Smooth blobs with scratches drawn over them."""

    def __init__(self, size, seed):
        self.size, self.rng = size, np.random.default_rng(seed)

    def batch(self, n):
        axis = np.linspace(-1, 1, self.size)
        yy, xx = np.meshgrid(axis, axis, indexing="ij")
        cx, cy = self.rng.uniform(-0.6, 0.6, (2, n, 1, 1))
        clean = np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 0.3)
        clean = (clean - 0.35) / 0.3
        dirty = clean + 0.4 * self.rng.standard_normal(clean.shape)
        for i in range(n):
            dirty[i, self.rng.integers(0, self.size)] += 1.5
        return [torch.tensor(v[:, None], dtype=torch.float32) for v in (dirty, clean)]


class Engine:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(cfg.seed)
        np.random.seed(cfg.seed)
        torch.manual_seed(cfg.seed)
        self.net = UNet(cfg.width)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=cfg.lr)
        self.scaler = torch.amp.GradScaler("cpu", **asdict(cfg.scaler))
        self.data = Scratches(16, cfg.seed)

    def update(self, dirty, clean):
        self.opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            restored = self.net(dirty)
        loss = F.mse_loss(restored.float(), clean)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss.item()

    def run(self):
        began = time.perf_counter()
        self.net.train()
        for step in range(1, self.cfg.steps + 1):
            loss = self.update(*self.data.batch(self.cfg.batch))
            if step % 10 == 0:
                print(f"step {step:3d} loss {loss:.4f} scale {self.scaler.get_scale():.0f}")
        print(f"done in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    Engine(Config()).run()
