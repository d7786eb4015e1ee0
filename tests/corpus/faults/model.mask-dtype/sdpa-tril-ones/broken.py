"""Byte model with scaled_dot_product_attention and a mask kept as a buffer."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(211)
text = ("the quick brown fox jumps over the lazy dog and runs away from it. " * 120).encode()
data = torch.tensor(list(text)) % 128
CTX = 32


class Block(nn.Module):
    def __init__(self, d=48, h=4):
        super().__init__()
        self.h = h
        self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.register_buffer("seen", torch.tril(torch.ones(CTX, CTX)))

    def forward(self, x):
        n = x.size(1)
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.seen[:n, :n])
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.b(x))


class Bytes(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(128, d), nn.Embedding(CTX, d)
        self.blocks = nn.Sequential(Block(), Block())
        self.out = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 128))

    def forward(self, x):
        return self.out(self.blocks(self.tok(x) + self.pos.weight[: x.size(1)]))


net = Bytes()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.0)
for step in range(80):
    at = torch.randint(0, len(data) - CTX - 1, (16,)).tolist()
    x = torch.stack([data[i : i + CTX] for i in at])
    y = torch.stack([data[i + 1 : i + CTX + 1] for i in at])
    loss = F.cross_entropy(net(x).transpose(1, 2), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 19:
        print(step + 1, round(loss.item(), 3))
