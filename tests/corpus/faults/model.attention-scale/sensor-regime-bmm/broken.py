#!/usr/bin/env python
"""Forecast the regime of a multivariate sensor window with a small transformer (explicit bmm attention)."""

import json
import random
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Hparams:
    channels: int = 6
    window: int = 24
    classes: int = 4
    width: int = 128
    heads: int = 2
    layers: int = 2
    dropout: float = 0.1
    batch: int = 32
    updates: int = 120
    peak_lr: float = 1e-3
    seed: int = 99


def draw(rng, hp, n):
    t = np.arange(hp.window)
    label = rng.integers(hp.classes, size=n)
    speed = 0.25 + 0.2 * label[:, None, None]
    phase = rng.uniform(0, 1.0, size=(n, 1, hp.channels))
    wave = np.sin(speed * t[None, :, None] + phase) + 0.4 * rng.normal(size=(n, hp.window, hp.channels))
    wave = (wave - wave.mean()) / wave.std()
    return torch.tensor(wave, dtype=torch.float32), torch.tensor(label)


class BmmAttention(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.h = hp.heads
        self.d = hp.width // hp.heads
        self.wq = nn.Linear(hp.width, hp.width, bias=False)
        self.wk = nn.Linear(hp.width, hp.width, bias=False)
        self.wv = nn.Linear(hp.width, hp.width, bias=False)
        self.wo = nn.Linear(hp.width, hp.width)
        self.drop = nn.Dropout(hp.dropout)

    def fold(self, x):
        b, t, _ = x.shape
        return x.reshape(b, t, self.h, self.d).permute(0, 2, 1, 3).reshape(b * self.h, t, self.d)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.fold(self.wq(x)), self.fold(self.wk(x)), self.fold(self.wv(x))
        logits = torch.bmm(q, k.transpose(1, 2))
        attn = self.drop(logits.softmax(dim=-1))
        y = torch.bmm(attn, v).reshape(b, self.h, t, self.d).permute(0, 2, 1, 3).reshape(b, t, w)
        return self.wo(y)


class Layer(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.attn = BmmAttention(hp)
        self.n1, self.n2 = nn.LayerNorm(hp.width), nn.LayerNorm(hp.width)
        self.up, self.down = nn.Linear(hp.width, 2 * hp.width), nn.Linear(2 * hp.width, hp.width)
        self.drop = nn.Dropout(hp.dropout)

    def forward(self, x):
        x = x + self.drop(self.attn(self.n1(x)))
        return x + self.drop(self.down(torch.relu(self.up(self.n2(x)))))


class RegimeNet(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.inp = nn.Linear(hp.channels, hp.width)
        self.pos = nn.Parameter(torch.zeros(1, hp.window, hp.width))
        nn.init.trunc_normal_(self.pos, std=0.02)
        self.layers = nn.ModuleList([Layer(hp) for _ in range(hp.layers)])
        self.norm = nn.LayerNorm(hp.width)
        self.cls = nn.Linear(hp.width, hp.classes)

    def forward(self, x):
        z = self.inp(x) + self.pos
        for layer in self.layers:
            z = layer(z)
        return self.cls(self.norm(z).mean(1))


def run(hp):
    random.seed(hp.seed)
    np.random.seed(hp.seed)
    torch.manual_seed(hp.seed)
    rng = np.random.default_rng(hp.seed)
    print(json.dumps(asdict(hp)))

    x_val, y_val = draw(rng, hp, 256)
    net = RegimeNet(hp)
    decay = [p for p in net.parameters() if p.ndim == 2]
    plain = [p for p in net.parameters() if p.ndim != 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=hp.peak_lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=hp.peak_lr, total_steps=hp.updates, pct_start=0.2)
    ce = nn.CrossEntropyLoss()
    for update in range(1, hp.updates + 1):
        net.train()
        x, y = draw(rng, hp, hp.batch)
        opt.zero_grad(set_to_none=True)
        loss = ce(net(x), y)
        loss.backward()
        opt.step()
        sched.step()
        if update % 30 == 0:
            net.eval()
            with torch.no_grad():
                acc = (net(x_val).argmax(1) == y_val).float().mean().item()
            print(f"update {update} loss {loss.item():.3f} val acc {acc:.3f}")


if __name__ == "__main__":
    run(Hparams())
