"""Siamese distance learning on curves; the whole update lives in one function."""
import random

import numpy as np
import torch
from torch import nn


def fix_seeds(s):
    random.seed(s), np.random.seed(s), torch.manual_seed(s)


class CurveEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(1, 12, 5, padding=2)
        self.c2 = nn.Conv1d(12, 16, 5, padding=2)
        self.out = nn.Linear(16, 8)

    def forward(self, x):
        h = torch.relu(self.c1(x[:, None]))
        h = torch.relu(self.c2(torch.nn.functional.avg_pool1d(h, 2)))
        return self.out(h.mean(-1))


def curves(kind, rng):
    t = np.linspace(0, 1, 24)
    freq = 1.0 + 1.5 * kind[:, None]
    x = np.sin(2 * np.pi * freq * t + rng.uniform(0, 2 * np.pi, (len(kind), 1))) * 1.4 + rng.normal(0, 0.25, (len(kind), 24))
    return torch.tensor(x, dtype=torch.float32)


def pair_batch(n, rng):
    left, right = rng.integers(0, 4, n), rng.integers(0, 4, n)
    same = rng.random(n) < 0.5
    right = np.where(same, left, right)
    return curves(left, rng), curves(right, rng), torch.tensor(left == right, dtype=torch.float32)


def margin_loss(a, b, same, margin=2.0):
    gap = (a - b).square().sum(-1).add(1e-6).sqrt()
    return (same * gap.square() + (1 - same) * torch.relu(margin - gap).square()).mean()


def update(encoder, optimizer, batch):
    a, b, same = batch
    for p in encoder.parameters():
        p.grad = None
    loss = margin_loss(encoder(a), encoder(b), same)
    loss.backward()
    optimizer.step()
    return loss.detach()


def run():
    fix_seeds(19)
    rng = np.random.default_rng(19)
    encoder = CurveEncoder()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.8)
    recent = []
    for i in range(1, 101):
        recent.append(update(encoder, optimizer, pair_batch(48, rng)).item())
        if i % 20 == 0:
            print(f"{i:4d} {np.mean(recent[-20:]):.4f}")


run()
