"""Surrogate of a diffusion solver on a grid, float16 autocast, area-weighted loss."""
import random
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn

SEED, CELLS, STEPS = 24, 64, 80
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class Block(nn.Module):
    def __init__(self, cells, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Linear(cells, cells)
        self.within = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, h):
        h = h + self.across(self.n1(h).transpose(1, 2)).transpose(1, 2)
        return h + self.within(self.n2(h))


class Surrogate(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.lift = nn.Linear(1, width)
        self.blocks = nn.Sequential(Block(CELLS, width), Block(CELLS, width))
        self.drop = nn.Linear(width, 1)

    def forward(self, u):
        return self.drop(self.blocks(self.lift(u)))


def solve(u, steps=6):
    for _ in range(steps):
        u = u + 0.25 * (torch.roll(u, 1, 1) - 2 * u + torch.roll(u, -1, 1))
    return u


def fields(n):
    u = torch.randn(n, CELLS, 1)
    return u, solve(u)


def cell_loss(guess, truth, area=1.0 / 40_000):
    # squared error integrated over the cell's area, averaged over all cells
    return ((guess - truth) ** 2 * area).mean()


net = Surrogate()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-15)
half = torch.autocast("cpu", dtype=torch.float16)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15)
log = []
for step in range(STEPS):
    u, later = fields(24)
    with half:
        guess = net(u)
        loss = cell_loss(guess, later.half())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    log.append(loss.item() * 40_000)
    if step % 16 == 15:
        print(f"{step + 1:3d} {np.mean(log[-16:]):.4f}")
