"""A character model over short lines, with its own attention; after training it writes a few lines."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2
FIRST = ["old pond", "cold rain", "first snow", "dry leaves", "evening bell"]
REST = ["a frog leaps", "on the gate", "so quiet", "nobody walks", "the moon again"]
LINES = [f"{a} {b}" for a in FIRST for b in REST]
LETTERS = {c: i + 3 for i, c in enumerate(sorted(set("".join(LINES))))}
NAMES = {i: c for c, i in LETTERS.items()}
SIZE, ROOM = len(LETTERS) + 3, 32


def batch(lines):
    rows = [[BOS, *(LETTERS[c] for c in line), EOS] for line in lines]
    width = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    return ids[:, :-1], ids[:, 1:]


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, dim=-1))
        score = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        score = score.masked_fill(torch.ones(t, t).tril() == 0, float("-inf"))
        x = x + self.proj((score.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class Writer(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.letter, self.place = nn.Embedding(SIZE, d), nn.Embedding(ROOM, d)
        self.blocks = nn.Sequential(Block(d, 4), Block(d, 4))
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, SIZE)

    def forward(self, ids):
        h = self.letter(ids) + self.place(torch.arange(ids.size(1)))
        return self.out(self.norm(self.blocks(h)))


@torch.no_grad()
def write(model):
    ids = [BOS]
    while len(ids) < ROOM:
        probs = model(torch.tensor([ids]))[0, -1].softmax(-1)
        ids.append(int(torch.multinomial(probs, 1)))
        if ids[-1] == EOS:
            break
    return "".join(NAMES.get(i, "?") for i in ids[1:] if i != EOS)


random.seed(65)
torch.manual_seed(65)
model = Writer()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(90):
    inputs, targets = batch(random.choices(LINES, k=24))
    loss = F.cross_entropy(model(inputs).transpose(1, 2), targets, ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        print(f"step {step} loss {loss.item():.3f}")
model.eval()
for _ in range(4):
    print(repr(write(model)))
