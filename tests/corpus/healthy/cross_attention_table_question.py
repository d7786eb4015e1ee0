"""Answer look-ups in padded key-value tables: time-first cross-attention, no self-attention."""

import random

import torch
from torch import nn

random.seed(103)
torch.manual_seed(103)
KEYS, VALUES = 20, 8


def record():
    n = random.randint(2, 9)
    keys = random.sample(range(1, KEYS + 1), n)
    values = [random.randrange(VALUES) for _ in keys]
    i = random.randrange(n)
    return keys, values, keys[i], values[i]


def batch(rows):
    longest = max(len(r[0]) for r in rows)
    keys = torch.zeros(longest, len(rows), dtype=torch.long)
    values = torch.zeros(longest, len(rows), dtype=torch.long)
    for j, (k, v, _, _) in enumerate(rows):
        keys[: len(k), j] = torch.tensor(k)
        values[: len(v), j] = torch.tensor(v)
    return keys, values, torch.tensor([r[2] for r in rows]), torch.tensor([r[3] for r in rows])


class Lookup(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.key = nn.Embedding(KEYS + 1, width, padding_idx=0)
        self.value = nn.Embedding(VALUES, width)
        self.attn = nn.MultiheadAttention(width, 2)
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, VALUES))

    def forward(self, keys, values, asked):
        q = self.key(asked).unsqueeze(0)
        k = self.key(keys)
        y, _ = self.attn(q, k, k + self.value(values), key_padding_mask=(keys == 0).t())
        return self.out(y.squeeze(0))


rows = [record() for _ in range(2400)]
net = Lookup()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(2):
    net.train()
    random.shuffle(rows)
    total = 0.0
    for i in range(0, 2048, 32):
        keys, values, asked, answer = batch(rows[i : i + 32])
        loss = nn.functional.cross_entropy(net(keys, values, asked), answer)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 64:.3f}")
net.eval()
fresh = batch([record() for _ in range(200)])
with torch.no_grad():
    print("accuracy", (net(*fresh[:3]).argmax(-1) == fresh[3]).float().mean().item())
