"""Sparse top-k codes of sensor windows, pulled towards a slowly moving teacher that is kept out of the module tree."""

import copy
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    window: int = 40
    codes: int = 96
    active: int = 8
    batch: int = 12
    epochs: int = 3
    lr: float = 1e-3
    momentum: float = 0.98
    seed: int = 29


class Standardise(nn.Module):
    """Each window by its own mean and spread; a flat window stays flat."""

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-4).sqrt()


class TopKCoder(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.active = s.active
        self.encode = nn.Sequential(Standardise(), nn.Linear(s.window, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, s.codes))
        self.decode = nn.Linear(s.codes, s.window)

    def forward(self, x):
        raw = self.encode(x)
        top = raw.topk(self.active, dim=-1)
        code = torch.zeros_like(raw).scatter(-1, top.indices, F.relu(top.values))
        return code, self.decode(code)


class Experiment:
    def __init__(self, s: Settings):
        self.s = s
        self.student = TopKCoder(s)
        self.teachers = [copy.deepcopy(self.student).requires_grad_(False).eval()]
        self.optimizer = torch.optim.Adam(self.student.parameters(), lr=s.lr)
        self.normalise = Standardise()

    def loss(self, x):
        code, rebuilt = self.student(x)
        with torch.no_grad():
            wanted = self.teachers[0](x)[0].detach()
        agreement = 1 - F.cosine_similarity(code, wanted, dim=-1, eps=1e-6).mean()
        return F.mse_loss(rebuilt, self.normalise(x)) + 0.1 * agreement

    @torch.no_grad()
    def move_teacher(self):
        for slow, fast in zip(self.teachers[0].state_dict().values(), self.student.state_dict().values(), strict=True):
            if slow.is_floating_point():
                slow.lerp_(fast, 1 - self.s.momentum)
            else:
                slow.copy_(fast)

    def fit(self, train, valid):
        for epoch in range(self.s.epochs):
            self.student.train()
            seen = []
            for (x,) in train:
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.loss(x)
                loss.backward()
                self.optimizer.step()
                self.move_teacher()
                seen.append(loss.item())
            self.student.eval()
            with torch.no_grad():
                held = np.mean([F.mse_loss(self.student(x)[1], self.normalise(x)).item() for (x,) in valid])
            print(f"epoch {epoch}: loss {np.mean(seen):.4f} held-out reconstruction {held:.4f}")


def windows(n, s, rng):
    t = np.arange(s.window)
    motifs = np.stack([np.sin(2 * np.pi * f * t / s.window + p) for f in (1, 2, 3, 5) for p in (0, 1, 2)])
    weights = rng.normal(0, 1, (n, len(motifs))) * (rng.random((n, len(motifs))) < 0.25)
    return torch.tensor(weights @ motifs + rng.normal(0, 0.1, (n, s.window)), dtype=torch.float32)


if __name__ == "__main__":
    s = Settings()
    random.seed(s.seed)
    np.random.seed(s.seed)
    torch.manual_seed(s.seed)
    data = windows(1160, s, np.random.default_rng(s.seed))
    train = DataLoader(TensorDataset(data[:960]), batch_size=s.batch, shuffle=True)
    Experiment(s).fit(train, DataLoader(TensorDataset(data[960:]), batch_size=100))
