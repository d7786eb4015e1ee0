"""Denoising diffusion on a two-dimensional mixture, small enough for a laptop."""

import argparse
import math
import random

import numpy as np
import torch
import torch.nn as nn


def two_rings(count: int, rng: np.random.Generator) -> torch.Tensor:
    ring = rng.integers(0, 2, count)
    angle = rng.uniform(0, 2 * math.pi, count)
    radius = np.where(ring == 0, 0.7, 1.6) + rng.normal(0, 0.04, count)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    points = (points - points.mean(0)) / points.std(0)
    return torch.tensor(points, dtype=torch.float32)


class Denoiser(nn.Module):
    def __init__(self, width: int, time_dim: int = 16):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0.0, 4.0, time_dim // 2)))
        self.inp = nn.Linear(2 + time_dim, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(3)
        )
        self.out = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        phase = t[:, None] * self.freq
        h = self.inp(torch.cat([x, phase.sin(), phase.cos()], dim=-1))
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def alpha_bar(t: torch.Tensor) -> torch.Tensor:
    return torch.cos((t + 0.008) / 1.008 * math.pi / 2).square().clamp(1e-4, 0.9999)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--base-lr", type=float, default=2e-3)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--iterations", type=int, default=110)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    data = two_rings(4096, np.random.default_rng(args.seed))
    model = Denoiser(args.width)
    lr = args.base_lr * args.batch_size
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)

    running = None
    for it in range(args.iterations):
        idx = torch.randint(0, len(data), (args.batch_size,))
        x0 = data[idx]
        t = torch.rand(args.batch_size)
        noise = torch.randn_like(x0)
        a = alpha_bar(t)[:, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise

        optimizer.zero_grad()
        loss = (model(xt, t) - noise).square().mean()
        loss.backward()
        optimizer.step()

        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        if it % 10 == 0:
            print(f"iter {it:4d}  loss {loss.item():.4f}  ema {running:.4f}")


if __name__ == "__main__":
    main()
