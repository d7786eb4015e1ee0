"""Prefix LM: the question is read both ways, the answer left to right. The mask is put together with cat."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(31)
np.random.seed(31)
torch.manual_seed(31)
V, P, A, D = 20, 6, 6, 48


def allowed():
    top = torch.cat([torch.ones(P, P), torch.zeros(P, A)], 1)
    bottom = torch.cat([torch.ones(A, P), torch.tril(torch.ones(A, A))], 1)
    return torch.cat([top, bottom]).bool()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.ff = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x, m):
        q, k, v = (z.unflatten(-1, (4, D // 4)).transpose(1, 2) for z in self.qkv(self.a(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=m).transpose(1, 2).flatten(2)
        x = x + self.o(y)
        return x + self.ff(self.b(x))


class PrefixLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(P + A, D)
        nn.init.normal_(self.tok.weight, std=0.3)
        nn.init.normal_(self.pos.weight, std=0.3)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.ln, self.head = nn.LayerNorm(D), nn.Linear(D, V)
        self.register_buffer("mask", allowed())

    def forward(self, ids):
        n = ids.size(1)
        x = self.tok(ids) + self.pos(torch.arange(n))
        for blk in self.blocks:
            x = blk(x, self.mask[:n, :n])
        return self.head(self.ln(x))


def batch(n):
    q = torch.randint(1, V, (n, P))
    a = torch.cat([q.flip(1)[:, : A - 1], torch.zeros(n, 1, dtype=torch.long)], 1)
    return torch.cat([q, a], 1)


net = PrefixLM()
opt = torch.optim.Adam(net.parameters(), 3e-3)
for step in range(90):
    ids = batch(48)
    out = net(ids[:, :-1])
    loss = F.cross_entropy(out[:, P - 1 :].reshape(-1, V), ids[:, P:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(step, round(loss.item(), 3))
print("end", round(loss.item(), 3))
