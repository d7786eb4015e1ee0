"""Next-symbol model over noisy periodic strings. Attention spelled out with einsum, mask added to the scores."""

import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Cfg:
    symbols: int = 17
    width: int = 48
    heads: int = 4
    depth: int = 2
    window: int = 24
    batch: int = 32
    steps: int = 80
    lr: float = 2e-3


def seed_all(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


class Mixer(nn.Module):
    def __init__(self, c: Cfg):
        super().__init__()
        self.h, self.d = c.heads, c.width // c.heads
        self.wq = nn.Parameter(torch.randn(c.width, self.h, self.d) * c.width**-0.5)
        self.wk = nn.Parameter(torch.randn(c.width, self.h, self.d) * c.width**-0.5)
        self.wv = nn.Parameter(torch.randn(c.width, self.h, self.d) * c.width**-0.5)
        self.wo = nn.Parameter(torch.randn(self.h, self.d, c.width) * 0.1)

    def forward(self, x, bias):
        q = torch.einsum("btc,chd->bhtd", x, self.wq)
        k = torch.einsum("btc,chd->bhtd", x, self.wk)
        v = torch.einsum("btc,chd->bhtd", x, self.wv)
        a = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(self.d)
        a = (a + bias).softmax(-1)
        y = torch.einsum("bhqk,bhkd->bhqd", a, v)
        return torch.einsum("bhqd,hdc->bqc", y, self.wo)


class Layer(nn.Module):
    def __init__(self, c: Cfg):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(c.width), nn.LayerNorm(c.width)
        self.mix = Mixer(c)
        self.ff = nn.Sequential(nn.Linear(c.width, 2 * c.width), nn.SiLU(), nn.Linear(2 * c.width, c.width))

    def forward(self, x, bias):
        x = x + self.mix(self.n1(x), bias)
        return x + self.ff(self.n2(x))


class SymbolModel(nn.Module):
    def __init__(self, c: Cfg):
        super().__init__()
        self.tok = nn.Embedding(c.symbols, c.width)
        self.where = nn.Embedding(c.window, c.width)
        nn.init.normal_(self.tok.weight, std=0.3)
        nn.init.normal_(self.where.weight, std=0.3)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.depth))
        self.norm = nn.LayerNorm(c.width)
        self.out = nn.Linear(c.width, c.symbols)
        future = torch.triu(torch.ones(c.window, c.window), diagonal=1)
        self.register_buffer("bias", future * -1e9, persistent=False)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tok(ids) + self.where.weight[:n]
        for layer in self.layers:
            x = layer(x, self.bias[:n, :n])
        return self.out(self.norm(x))


def make_strings(c: Cfg, count):
    rows = np.zeros((count, c.window + 1), dtype=np.int64)
    for r in rows:
        period = np.random.randint(3, 7)
        motif = np.random.randint(0, c.symbols, size=period)
        r[:] = np.resize(motif, c.window + 1)
        hit = np.random.rand(c.window + 1) < 0.05
        r[hit] = np.random.randint(0, c.symbols, size=hit.sum())
    return torch.from_numpy(rows)


def main():
    c = Cfg()
    seed_all(11)
    strings = make_strings(c, 1500)
    train, held = strings[:1300], strings[1300:]
    net = SymbolModel(c)
    opt = torch.optim.Adam(net.parameters(), lr=c.lr)
    for it in range(c.steps):
        rows = train[torch.randint(0, len(train), (c.batch,))]
        logits = net(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        if it % 20 == 0 or it == c.steps - 1:
            net.eval()
            with torch.no_grad():
                v = F.cross_entropy(net(held[:, :-1]).flatten(0, 1), held[:, 1:].flatten())
            net.train()
            print(f"it {it:3d} train {loss.item():.3f} held {v.item():.3f}")


if __name__ == "__main__":
    main()
