"""Read four-symbol codes from noisy strips with a small matmul-attention encoder."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(201)
GLYPHS = torch.randn(10, 4, 8)


def strips(n):
    code = torch.randint(0, 10, (n, 4))
    x = GLYPHS[code].flatten(1, 2) + 0.5 * torch.randn(n, 16, 8)
    return x, code


class Mixer(nn.Module):
    def __init__(self, d=64, h=4):
        super().__init__()
        self.h, self.d = h, d
        self.to_q, self.to_kv, self.back = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.to_q(x).reshape(b, n, self.h, -1).permute(0, 2, 1, 3)
        k, v = self.to_kv(x).reshape(b, n, 2, self.h, -1).permute(2, 0, 3, 1, 4)
        att = torch.matmul(q, k.mT) / math.sqrt(self.d // self.h)
        out = torch.matmul(F.softmax(att, dim=-1), v)
        return self.back(out.permute(0, 2, 1, 3).reshape(b, n, self.d))


class Reader(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.inp, self.pos = nn.Linear(8, d), nn.Parameter(torch.randn(16, d) * 0.1)
        self.n1, self.mix, self.n2 = nn.LayerNorm(d), Mixer(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.out = nn.Linear(4 * d, 10)

    def forward(self, x):
        h = self.inp(x) + self.pos
        h = h + self.mix(self.n1(h))
        h = h + self.ff(self.n2(h))
        return self.out(h.reshape(len(x), 4, -1))


net = Reader()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
x, y = strips(800)
for epoch in range(3):
    for i in torch.randperm(700).split(25):
        loss = F.cross_entropy(net(x[i]).flatten(0, 1), y[i].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print(epoch, round(loss.item(), 3), (net(x[700:]).argmax(-1) == y[700:]).float().mean().item())
