"""Query and item towers; in-batch negatives, symmetric cross-entropy on scaled cosine similarities."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(61)
np.random.seed(61)
torch.manual_seed(61)
A, B = torch.randn(6, 14), torch.randn(6, 20)


def pairs(n):
    z = torch.randn(n, 6)
    return (z @ A) / 6**0.5 + 0.1 * torch.randn(n, 14), (z @ B) / 6**0.5 + 0.1 * torch.randn(n, 20)


class Tower(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(i, 48), nn.GELU(), nn.Linear(48, 16))

    def forward(self, x):
        return F.normalize(self.f(x), dim=-1)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.i = Tower(14), Tower(20)
        self.scale = nn.Parameter(torch.tensor(2.3))

    def forward(self, a, b):
        return self.scale.exp() * self.q(a) @ self.i(b).T


net = Pair()
opt = torch.optim.Adam(net.parameters(), 3e-3)
for it in range(100):
    s = net(*pairs(48))
    y = torch.arange(48)
    loss = (F.cross_entropy(s, y) + F.cross_entropy(s.T, y)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 30 == 0:
        print(it, loss.item())
print(loss.item())
