"""Metric learning with mixed precision: embed spectra so that those of one instrument lie together."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

INSTRUMENTS, BINS = 8, 40


def record(per_instrument, rng):
    timbre = np.random.default_rng(9).gamma(0.5, 1.0, (INSTRUMENTS, BINS))
    x, y = [], []
    for k in range(INSTRUMENTS):
        x.append(np.log1p(timbre[k] * rng.gamma(6.0, 1 / 6.0, (per_instrument, BINS))))
        y += [k] * per_instrument
    x = np.concatenate(x) + 0.25 * rng.standard_normal((len(y), BINS))
    x = (x - x.mean(0)) / x.std(0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class Embedder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(BINS, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, dim))

    def forward(self, x):
        return F.normalize(self.body(x).float(), dim=-1)


def supervised_contrastive(z, y, temperature=0.1):
    near = z @ z.t() / temperature
    itself = torch.eye(len(y), dtype=torch.bool)
    near = near.masked_fill(itself, -1e4)
    log_p = near - near.logsumexp(dim=1, keepdim=True)
    same = (y[:, None] == y[None, :]) & ~itself
    return -((log_p * same).sum(1) / same.sum(1).clamp(min=1)).mean()


class Session:
    def __init__(self, lr=2e-3):
        self.model = Embedder()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, x, y):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
        with torch.autocast("cpu", dtype=torch.float16):
            z = self.model(x)
        loss = supervised_contrastive(z, y)
        scaler.scale(loss).backward()
        scaler.step(self.optimizer)
        scaler.update()
        return loss.item()


def main():
    random.seed(27)
    np.random.seed(27)
    torch.manual_seed(27)
    x, y = record(100, np.random.default_rng(27))
    session = Session()
    for epoch in range(5):
        losses = [session.step(x[rows], y[rows]) for rows in torch.randperm(len(x)).split(40)]
        print(f"epoch {epoch} loss {np.mean(losses):.4f}")


if __name__ == "__main__":
    main()
