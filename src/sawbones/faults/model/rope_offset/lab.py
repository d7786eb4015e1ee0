"""A language model with rotary positions whose cache forgets where it stands: every generated token
is rotated as the first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW

from sawbones.lab.patient import admit

patient = admit()
NUM_TOKENS, COLUMNS, ROWS, WIDTH, HEADS = 24, 20, 640, 48, 4
Cache = tuple[Tensor, Tensor]
# A row repeats a short motif, so the next token stands a fixed distance back.
periods = torch.randint(3, 6, (ROWS, 1))
rows = torch.randint(0, NUM_TOKENS, (ROWS, 5)).gather(
    1, torch.arange(COLUMNS + 1).expand(ROWS, -1) % periods
)


def rotate(x_BHTC: Tensor, start: int) -> Tensor:
    """Pairs of features turn by an angle that grows with the position."""
    half = x_BHTC.shape[-1] // 2
    places = torch.arange(start, start + x_BHTC.shape[2])
    angles = torch.outer(places, 100.0 ** (-torch.arange(half) / half))
    one, two = x_BHTC.chunk(2, dim=-1)
    return torch.cat(
        [one * angles.cos() - two * angles.sin(), one * angles.sin() + two * angles.cos()], dim=-1
    )


class RotaryModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.triple, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, NUM_TOKENS))

    def forward(self, rows_BT: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        x = self.tokens(rows_BT)
        query, key, value = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.triple(self.norm(x)).chunk(3, dim=-1)
        )
        past = 0 if cache is None or patient.broken else cache[0].shape[2]
        query, key = rotate(query, past), rotate(key, past)
        if cache is not None:
            key, value = torch.cat([cache[0], key], dim=2), torch.cat([cache[1], value], dim=2)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return self.head(x + self.feed(x)), (key, value)

    @torch.no_grad()
    def extend(self, rows_BT: Tensor, count: int) -> Tensor:
        scores, cache = self(rows_BT)
        for _ in range(count):
            rows_BT = torch.cat([rows_BT, scores[:, -1:].argmax(-1)], dim=1)
            scores, cache = self(rows_BT[:, -1:], cache)
        return rows_BT


model = RotaryModel()
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(4):
    model.train()
    for part_BT in rows[torch.randperm(ROWS)].split(32):
        scores_BTV, _ = model(part_BT[:, :-1])
        loss = functional.cross_entropy(scores_BTV.flatten(0, 1), part_BT[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    model.eval()
    made = model.extend(rows[:8, :12], 8)
    print(f"continued rightly: {(made[:, 12:] == rows[:8, 12:20]).float().mean().item():.2f}")
patient.discharge()
