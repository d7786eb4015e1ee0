"""Density of a two-dimensional ring by a small coupling flow, in float16."""
import math
import random

import numpy as np
import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, flip, width=48):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, z):
        a, b = (z[:, 1:], z[:, :1]) if self.flip else (z[:, :1], z[:, 1:])
        shift, log_scale = self.net(a).float().chunk(2, -1)
        log_scale = torch.tanh(log_scale)
        b = b * log_scale.exp() + shift
        return (torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)), log_scale.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.steps = nn.ModuleList(Coupling(i % 2 == 1) for i in range(depth))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for s in self.steps:
            x, change = s(x)
            total = total + change
        return total - 0.5 * x.square().sum(1) - math.log(2 * math.pi)


def ring(n):
    angle = torch.rand(n) * 2 * math.pi
    radius = 1.4 + 0.1 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


class Config:
    seed = 3
    steps = 120
    batch = 96
    lr = 4e-3
    scale = dict(init_scale=2.0**14, growth_interval=400)


def main(cfg=Config):
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=cfg.lr)
    scaler = torch.amp.GradScaler(device="cpu", **cfg.scale)
    values = []
    for step in range(1, cfg.steps + 1):
        x = ring(cfg.batch)
        with torch.amp.autocast(device_type="cpu", dtype=torch.float16):
            nll = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        scaler.scale(nll).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        values.append(nll.item())
        if step % 20 == 0:
            print(f"{step} nll {np.mean(values[-20:]):.3f} scale {scaler.get_scale():g}")


if __name__ == "__main__":
    main()
