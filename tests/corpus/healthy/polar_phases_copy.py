"""Repeat a random half after a separator: attention over polar codes, where keys have trained phases of their own."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)
SYMBOLS, HALF, WIDTH, HEADS = 10, 8, 48, 4
LENGTH = 2 * HALF + 1


def batch(size, generator):
    first = torch.randint(1, SYMBOLS, (size, HALF), generator=generator)
    return torch.cat([first, torch.zeros(size, 1, dtype=torch.long), first], dim=1)


class PolarAttention(nn.Module):
    """Projections give magnitudes, positions give the angles; a key's angle is shifted by a trained amount per head."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        size = WIDTH // HEADS
        self.register_buffer("rates", 50.0 ** -(torch.arange(size) / size))
        self.phase = nn.Parameter(torch.zeros(HEADS, 1, size))

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (p(x).view(rows, length, HEADS, -1).transpose(1, 2) for p in (self.query, self.key, self.value))
        angles = torch.arange(length).unsqueeze(1) * self.rates
        shifted = angles + self.phase.clamp(-2 * math.pi, 0)
        q, k = F.softplus(q), F.softplus(k)
        q = torch.cat([q * angles.cos(), q * angles.sin()], dim=-1)
        k = torch.cat([k * shifted.cos(), k * shifted.sin()], dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.middle = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = PolarAttention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.middle(x))


class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embed(tokens))))


def second_half_loss(model, tokens):
    logits = model(tokens[:, :-1])[:, HALF:]
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, HALF + 1 :].flatten())


model = Copier()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
train, held_out = torch.Generator().manual_seed(1), batch(128, torch.Generator().manual_seed(2))
for step in range(160):
    optimizer.zero_grad()
    loss = second_half_loss(model, batch(48, train))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 39:
        model.eval()
        with torch.no_grad():
            print(step + 1, loss.item(), second_half_loss(model, held_out).item())
        model.train()
