"""Melody continuation with einsum attention and a learned relative bias."""

import math

import torch
from torch import nn

torch.manual_seed(2)

PITCHES, CONTEXT, WIDTH, HEADS = 32, 32, 128, 2
HEAD = WIDTH // HEADS


def melodies(n, seed):
    g = torch.Generator().manual_seed(seed)
    start = torch.randint(0, PITCHES, (n, 1), generator=g)
    stride = torch.randint(1, 5, (n, 1), generator=g)
    t = torch.arange(CONTEXT + 1)[None]
    tune = (start + stride * t + (t % 4 == 3) * 7) % PITCHES
    wrong = torch.rand(tune.shape, generator=g) < 0.05
    return torch.where(wrong, torch.randint(0, PITCHES, tune.shape, generator=g), tune)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Parameter(torch.randn(WIDTH, HEADS, HEAD) / math.sqrt(WIDTH))
        self.k = nn.Parameter(torch.randn(WIDTH, HEADS, HEAD) / math.sqrt(WIDTH))
        self.v = nn.Parameter(torch.randn(WIDTH, HEADS, HEAD) / math.sqrt(WIDTH))
        self.o = nn.Parameter(torch.randn(HEADS, HEAD, WIDTH) / math.sqrt(WIDTH))
        self.distance = nn.Parameter(torch.zeros(HEADS, CONTEXT))
        i = torch.arange(CONTEXT)
        self.register_buffer("gap", (i[:, None] - i[None, :]).clamp(min=0))
        self.register_buffer("future", i[:, None] < i[None, :])

    def forward(self, x):
        n = x.size(1)
        q = torch.einsum("btw,whd->bhtd", x, self.q)
        k = torch.einsum("btw,whd->bhtd", x, self.k)
        v = torch.einsum("btw,whd->bhtd", x, self.v)
        score = torch.einsum("bhid,bhjd->bhij", q, k) * HEAD**-0.5
        score = score + self.distance[:, self.gap[:n, :n]]
        score = score + torch.zeros(n, n).masked_fill(self.future[:n, :n], -1e9)
        return torch.einsum("bhij,bhjd,hdw->biw", score.softmax(-1), v, self.o)


class Player(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.notes = nn.Embedding(PITCHES, WIDTH)
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2 * depth + 1)])
        self.attns = nn.ModuleList([Attention() for _ in range(depth)])
        self.mlps = nn.ModuleList(
            [nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(depth)]
        )
        self.to_pitch = nn.Linear(WIDTH, PITCHES)

    def forward(self, ids):
        x = self.notes(ids)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps)):
            x = x + attn(self.norms[2 * i](x))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.to_pitch(self.norms[-1](x))


train, test = melodies(512, 1), melodies(64, 2)
player = Player()
optimizer = torch.optim.AdamW(player.parameters(), lr=1e-3, weight_decay=0.0)
nll = nn.CrossEntropyLoss()
for step in range(80):
    rows = train[torch.randint(0, len(train), (16,))]
    loss = nll(player(rows[:, :-1]).reshape(-1, PITCHES), rows[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 20 == 0:
        player.eval()
        with torch.no_grad():
            held = nll(player(test[:, :-1]).reshape(-1, PITCHES), test[:, 1:].reshape(-1))
        player.train()
        print(f"{step + 1:3d} {loss.item():.3f} {held.item():.3f}")
