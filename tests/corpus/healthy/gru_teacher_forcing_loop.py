"""Reverse a word: GRU encoder, attending decoder run step by step in Python with teacher forcing."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

random.seed(55)
np.random.seed(55)
torch.manual_seed(55)
PAD, BOS, EOS, V = 0, 1, 2, 16


class Seq2Seq(nn.Module):
    def __init__(self, e=24, h=48):
        super().__init__()
        self.src, self.tgt = nn.Embedding(V, e, padding_idx=PAD), nn.Embedding(V, e, padding_idx=PAD)
        self.enc, self.cell = nn.GRU(e, h, batch_first=True), nn.GRUCell(e + h, h)
        self.score, self.out = nn.Linear(h, h, bias=False), nn.Linear(2 * h, V)

    def forward(self, src, tgt):
        pad = src == PAD
        mem, last = self.enc(self.src(src))
        h, ctx, outs = last[0], mem.new_zeros(len(src), mem.size(-1)), []
        for t in range(tgt.size(1)):
            h = self.cell(torch.cat([self.tgt(tgt[:, t]), ctx], -1), h)
            a = (mem @ self.score(h).unsqueeze(-1)).squeeze(-1) / mem.size(-1) ** 0.5
            a = a.masked_fill(pad, -1e9).softmax(-1)
            ctx = (a.unsqueeze(1) @ mem).squeeze(1)
            outs.append(self.out(torch.cat([h, ctx], -1)))
        return torch.stack(outs, 1)


def batch(n):
    words = [[random.randint(3, V - 1) for _ in range(random.randint(3, 6))] for _ in range(n)]
    w = max(map(len, words))
    f = lambda rows, k: torch.tensor([r + [PAD] * (k - len(r)) for r in rows])
    return f(words, w), f([[BOS] + r[::-1] + [EOS] for r in words], w + 2)


net = Seq2Seq()
opt = torch.optim.Adam(net.parameters(), 6e-3)
for step in range(110):
    s, t = batch(48)
    loss = F.cross_entropy(net(s, t[:, :-1]).transpose(1, 2), t[:, 1:], ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if step % 30 == 0:
        print(step, loss.item())
print(loss.item())
