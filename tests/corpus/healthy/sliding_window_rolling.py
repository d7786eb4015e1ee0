"""Local causal attention: every position sees itself and the five before it. Time-major, ALiBi-like slopes, no position table."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(40)
np.random.seed(40)
torch.manual_seed(40)
V, T, D, W = 24, 30, 48, 6


class Local(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        self.h = heads
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
        self.register_buffer("slope", 2.0 ** -torch.arange(1, heads + 1))

    def forward(self, x):  # (T, B, D)
        n, b, _ = x.shape
        split = lambda z: z.view(n, b, self.h, D // self.h).permute(1, 2, 0, 3)
        i = torch.arange(n)
        gap = i[:, None] - i[None, :]
        s = split(self.q(x)) @ split(self.k(x)).mT * (D // self.h) ** -0.5 - self.slope[:, None, None] * gap.clamp(min=0)
        s = torch.where((gap >= 0) & (gap < W), s, torch.finfo(s.dtype).min)
        return self.o((s.softmax(-1) @ split(self.v(x))).permute(2, 0, 1, 3).reshape(n, b, D))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, D)
        nn.init.normal_(self.e.weight, std=0.4)
        self.att = nn.ModuleList([Local(), Local()])
        self.n = nn.ModuleList([nn.LayerNorm(D) for _ in range(4)])
        self.ff = nn.ModuleList([nn.Sequential(nn.Linear(D, 96), nn.GELU(), nn.Linear(96, D)) for _ in range(2)])
        self.out = nn.Linear(D, V)

    def forward(self, ids):
        x = self.e(ids.t())
        for k in range(2):
            x = x + self.att[k](self.n[2 * k](x))
            x = x + self.ff[k](self.n[2 * k + 1](x))
        return self.out(x).transpose(0, 1)


def strings(n):
    s = torch.randint(0, V, (n, T + 1))
    for t in range(3, T + 1):
        s[:, t] = torch.where(torch.rand(n) < 0.92, (s[:, t - 1] + s[:, t - 3]) % V, s[:, t])
    return s


data = strings(1000)
net = Net()
opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(3):
    for p in torch.randperm(1000).split(32):
        loss = F.cross_entropy(net(data[p, :-1]).flatten(0, 1), data[p, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    print(epoch, loss.item())
