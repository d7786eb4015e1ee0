"""Character model of a small arithmetic language, cosine rate written by hand into the groups."""
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(9)
np.random.seed(9)
torch.manual_seed(9)

alphabet = "0123456789+=;"
index = {c: i for i, c in enumerate(alphabet)}


def corpus(n):
    lines = []
    for _ in range(n):
        a, b = random.randint(0, 9), random.randint(0, 9)
        lines.append(f"{a}+{b}={a + b:02d};")
    return lines


def encode(lines):
    return torch.tensor([[index[c] for c in line] for line in lines])


class Decoder(nn.Module):
    def __init__(self, vocab, length, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        self.ln1, self.ln2, self.ln3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.mix = nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.lm = nn.Linear(dim, vocab)

    def forward(self, ids):
        b, t = ids.shape
        h = self.tok(ids) + self.pos(torch.arange(t))
        q, k, v = self.qkv(self.ln1(h)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.mix(a.transpose(1, 2).reshape(b, t, -1))
        h = h + self.ff(self.ln2(h))
        return self.lm(self.ln3(h))


def cosine(step, peak, total, floor=0.0):
    progress = min(1.0, step / total)
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


data = encode(corpus(1200))
model = Decoder(len(alphabet), 6)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
EPOCHS, BATCH, PEAK = 4, 50, 4e-3
per_epoch = len(data) // BATCH

step = 0
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(data)).split(BATCH):
        for group in optimizer.param_groups:
            group["lr"] = cosine(step, PEAK, EPOCHS * per_epoch)
        ids = data[rows]
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, len(alphabet)), ids[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        step += 1
    print(f"epoch {epoch} loss {total / per_epoch:.4f} lr {optimizer.param_groups[0]['lr']:.2e}")
