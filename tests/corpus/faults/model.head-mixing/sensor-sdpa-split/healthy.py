"""Fault detection in multi-sensor windows, scaled_dot_product_attention encoder."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 77
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


def windows(n):
    t = np.linspace(0, 1, 30)
    xs, ys = [], []
    for _ in range(n):
        x = np.stack([np.sin(2 * np.pi * (f + np.random.rand()) * t) for f in (1, 2, 3, 4)], 1)
        x += 0.2 * np.random.randn(*x.shape)
        y = np.random.randint(3)
        at = np.random.randint(4, 26)
        if y == 1:
            x[at - 2 : at + 2, 0] += 2.0
            x[at - 2 : at + 2, 2] -= 2.0
        elif y == 2:
            x[at - 2 : at + 2, 1] += 2.0
            x[at - 2 : at + 2, 3] -= 2.0
        xs.append(x)
        ys.append(y)
    x = np.stack(xs)
    return torch.tensor((x - x.mean()) / x.std(), dtype=torch.float32), torch.tensor(ys)


class SelfAttention(nn.Module):
    def __init__(self, dim, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (a.reshape(b, t, self.n_head, c // self.n_head).transpose(1, 2) for a in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Detector(nn.Module):
    def __init__(self, dim=32, layers=2):
        super().__init__()
        self.stem = nn.Linear(4, dim)
        self.when = nn.Embedding(30, dim)
        self.attn = nn.ModuleList(SelfAttention(dim, 4) for _ in range(layers))
        self.ffn = nn.ModuleList(nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim)) for _ in range(layers))
        self.ln1 = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.ln2 = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.head = nn.Linear(dim, 3)

    def forward(self, x):
        h = self.stem(x) + self.when(torch.arange(x.size(1)))
        for a, f, n1, n2 in zip(self.attn, self.ffn, self.ln1, self.ln2):
            h = h + a(n1(h))
            h = h + f(n2(h))
        return self.head(h.amax(dim=1))


x_train, y_train = windows(512)
x_val, y_val = windows(96)
model = Detector()
opt = torch.optim.RAdam(model.parameters(), lr=4e-3)
for epoch in range(5):
    model.train()
    for idx in torch.randperm(len(x_train)).split(32):
        loss = F.cross_entropy(model(x_train[idx]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.inference_mode():
        out = model(x_val)
        print(
            epoch,
            round(loss.item(), 3),
            round(F.cross_entropy(out, y_val).item(), 3),
            (out.argmax(1) == y_val).float().mean().item(),
        )
