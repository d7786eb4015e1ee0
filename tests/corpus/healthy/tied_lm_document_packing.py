"""Tied-weight LM over packed documents: block-diagonal causal mask, positions restart at each document."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(23)
np.random.seed(23)
torch.manual_seed(23)
V, T, D, EOS = 30, 32, 48, 0


def row():
    ids, doc, pos, n = [], [], [], 0
    while len(ids) < T + 1:
        w, step = random.randint(1, V - 1), random.choice([2, 5])
        for p in range(random.randint(5, 12)):
            ids.append(w)
            doc.append(n)
            pos.append(p)
            w = 1 + (w - 1 + step) % (V - 1)
        ids.append(EOS)
        doc.append(n)
        pos.append(p + 1)
        n += 1
    return ids[: T + 1], doc[: T + 1], pos[: T + 1]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.MultiheadAttention(D, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x, block):
        y = self.n1(x)
        x = x + self.attn(y, y, y, attn_mask=block, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(16, D)
        nn.init.normal_(self.tok.weight, std=0.05)
        nn.init.normal_(self.pos.weight, std=0.05)
        self.layers, self.norm = nn.ModuleList([Layer(), Layer()]), nn.LayerNorm(D)
        self.head = nn.Linear(D, V, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, ids, doc, pos):
        n = ids.size(1)
        keep = (doc[:, :, None] == doc[:, None, :]) & torch.ones(n, n, dtype=torch.bool).tril()
        x = self.tok(ids) + self.pos(pos)
        for layer in self.layers:
            x = layer(x, (~keep).repeat_interleave(4, 0))
        return self.head(self.norm(x))


rows = [torch.tensor(z) for z in zip(*(row() for _ in range(800)))]
ids, doc, pos = rows
net = LM()
opt = torch.optim.AdamW(net.parameters(), 4e-3, weight_decay=0.0)
for epoch in range(3):
    for pick in torch.randperm(800).split(32):
        i, d, p = ids[pick], doc[pick], pos[pick]
        y = i[:, 1:].masked_fill(d[:, 1:] != d[:, :-1], -100)
        loss = F.cross_entropy(net(i[:, :-1], d[:, :-1], p[:, :-1]).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    print(epoch, loss.item())
