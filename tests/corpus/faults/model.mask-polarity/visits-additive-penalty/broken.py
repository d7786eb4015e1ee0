from dataclasses import dataclass

import numpy as np
import torch
from torch import nn, optim


@dataclass
class Settings:
    codes: int = 40
    longest: int = 14
    width: int = 24
    batch: int = 32
    steps: int = 90
    lr: float = 3e-3


class VisitEncoder(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.codes = nn.Embedding(s.codes, s.width)
        self.when = nn.Parameter(0.1 * torch.randn(s.longest, s.width))
        self.query, self.key, self.value = nn.Linear(s.width, s.width), nn.Linear(s.width, s.width), nn.Linear(s.width, s.width)
        self.norm = nn.LayerNorm(s.width)
        self.risk = nn.Sequential(nn.Linear(s.width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, codes, present):
        h = self.codes(codes) + self.when
        scores = torch.einsum("btd,bsd->bts", self.query(h), self.key(h)) / h.shape[-1] ** 0.5
        scores = scores + present[:, None, :] * -10000.0
        h = self.norm(h + torch.einsum("bts,bsd->btd", scores.softmax(dim=2), self.value(h)))
        pooled = (h * present[..., None]).sum(1) / present.sum(1, keepdim=True)
        return self.risk(pooled).squeeze(-1)


def simulate(rng, s, n):
    codes = rng.integers(1, s.codes, (n, s.longest))
    lengths = rng.integers(4, s.longest, n)
    present = np.arange(s.longest)[None] < lengths[:, None]
    codes = codes * present
    risky = ((codes > 0) & (codes < 8)).sum(1) / lengths
    label = (risky > np.median(risky)).astype(np.float32)
    return torch.as_tensor(codes), torch.as_tensor(present, dtype=torch.float32), torch.as_tensor(label)


def main():
    torch.manual_seed(0)
    rng, s = np.random.default_rng(0), Settings()
    codes, present, label = simulate(rng, s, 1500)
    net = VisitEncoder(s)
    adam = optim.Adam(net.parameters(), lr=s.lr)
    bce = nn.BCEWithLogitsLoss()
    for it in range(s.steps):
        rows = torch.randint(0, len(codes), (s.batch,))
        loss = bce(net(codes[rows], present[rows]), label[rows])
        adam.zero_grad()
        loss.backward()
        adam.step()
        if it % 15 == 0:
            print(f"{it:3d} {loss.item():.4f}")


main()
