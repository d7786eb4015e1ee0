"""Noise prediction on two-dimensional spirals; sinusoidal embedding of the time step, summed per sample."""

import math
import random

import numpy as np
import torch
from torch import nn

random.seed(3)
np.random.seed(3)
torch.manual_seed(3)
STEPS = 50
beta = torch.linspace(1e-4, 0.08, STEPS)
abar = torch.cumprod(1 - beta, 0)


def time_code(t, dim):
    f = torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
    a = t[:, None].float() * f[None]
    return torch.cat([a.sin(), a.cos()], -1)


class Net(nn.Module):
    def __init__(self, w=96):
        super().__init__()
        self.inp, self.time = nn.Linear(2, w), nn.Linear(32, w)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(w, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU())
        self.out = nn.Linear(w, 2)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(x) + self.time(time_code(t, 32))))


def spiral(n):
    r = torch.rand(n) * 3 + 0.5
    p = torch.stack([r * torch.cos(3 * r), r * torch.sin(3 * r)], -1) + 0.03 * torch.randn(n, 2)
    return p / 1.5


net = Net()
opt = torch.optim.Adam(net.parameters(), 2e-3)
for it in range(150):
    x = spiral(128)
    t = torch.randint(0, STEPS, (128,))
    e = torch.randn_like(x)
    noisy = abar[t].sqrt()[:, None] * x + (1 - abar[t]).sqrt()[:, None] * e
    loss = ((net(noisy, t) - e) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 0:
        print(it, loss.item())
print(loss.item())
