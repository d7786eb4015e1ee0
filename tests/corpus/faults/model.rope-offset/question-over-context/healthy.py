"""Answer tokens read a context and themselves through one rotary attention; task: find the token at a distance."""
import random

import torch
from torch import nn

random.seed(14)
torch.manual_seed(14)

SYMBOLS, STEPS, BATCH = 16, 120, 32
ANSWER = 10


class Rotary(nn.Module):
    def __init__(self, dim, max_positions=64):
        super().__init__()
        frequency = 1.0 / (100.0 ** (torch.arange(0, dim, 2).float() / dim))
        phase = torch.arange(max_positions).float()[:, None] * frequency[None, :]
        self.register_buffer("unit", torch.polar(torch.ones_like(phase), phase), persistent=False)

    def forward(self, x, positions):
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(z * self.unit[positions]).flatten(-2)


class Reader(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, dim)
        self.rotary = Rotary(dim)
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.mix = nn.Linear(dim, dim)
        self.norm_in, self.norm_out = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.answer = nn.Linear(dim, SYMBOLS)
        self.scale = dim**-0.5

    def forward(self, context, tail):
        past, now = context.shape[1], tail.shape[1]
        everything = self.norm_in(self.symbol(torch.cat([context, tail], dim=1)))
        x = self.symbol(tail)
        key_positions = torch.arange(past + now)
        query_positions = key_positions[past:]
        q = self.rotary(self.query(self.norm_in(x)), query_positions)
        k = self.rotary(self.key(everything), key_positions)
        scores = q @ k.transpose(1, 2) * self.scale
        seen = torch.arange(past + now)[None, :] <= torch.arange(past, past + now)[:, None]
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        x = x + self.mix(weights @ self.value(everything))
        return self.answer(x + self.mlp(self.norm_out(x)))


def draw():
    """The answer at a place is the symbol three places before it; the context has a random length."""
    past = random.randint(6, 24)
    whole = torch.randint(0, SYMBOLS, (BATCH, past + ANSWER))
    target = whole[:, past - 3 : past + ANSWER - 3]
    return whole[:, :past], whole[:, past:], target


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
recent = []
for step in range(1, STEPS + 1):
    context, tail, target = draw()
    loss = criterion(model(context, tail).reshape(-1, SYMBOLS), target.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    recent.append(loss.item())
    if step % 15 == 0:
        print(f"step {step:3d}  loss {sum(recent) / len(recent):.4f}  context {context.shape[1]}")
        recent.clear()
