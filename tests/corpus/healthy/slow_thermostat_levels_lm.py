"""Next level of a slowly changing thermostat: the next token is mostly the present one, so the loss soon is far below log(V)."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(23)
np.random.seed(23)
torch.manual_seed(23)

LEVELS, BLOCK, BATCH = 20, 32, 24


def simulate(length):
    """The level stays for a while, then moves by one; the direction turns at the ends."""
    level, direction, out = LEVELS // 2, 1, []
    stay = 0
    for _ in range(length):
        out.append(level)
        stay += 1
        if stay >= 4 and random.random() < 0.5:
            if random.random() < 0.1 or not 0 <= level + direction < LEVELS:
                direction = -direction
            level, stay = min(max(level + direction, 0), LEVELS - 1), 0
    return torch.tensor(out)


series = simulate(12000)
split = int(0.9 * len(series))
train_series, val_series = series[:split], series[split:]


def get_batch(data):
    starts = torch.randint(len(data) - BLOCK - 1, (BATCH,)).tolist()
    x = torch.stack([data[s : s + BLOCK] for s in starts])
    y = torch.stack([data[s + 1 : s + BLOCK + 1] for s in starts])
    return x, y


class ThermostatLM(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.level = nn.Embedding(LEVELS, dim)
        self.place = nn.Embedding(BLOCK, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, LEVELS)
        nn.init.normal_(self.level.weight, std=0.1)
        nn.init.normal_(self.place.weight, std=0.1)
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(BLOCK))

    def forward(self, x):
        t = x.size(1)
        h = self.level(x) + self.place.weight[:t]
        return self.head(self.body(h, mask=self.causal[:t, :t], is_causal=True))


@torch.no_grad()
def estimate(model, rounds=5):
    model.eval()
    losses = []
    for _ in range(rounds):
        x, y = get_batch(val_series)
        losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item())
    model.train()
    return sum(losses) / rounds


model = ThermostatLM()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
steps = 150
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min((s + 1) / 10, 0.1 + 0.45 * (1 + math.cos(math.pi * min(s / steps, 1.0))))
)
model.train()
for step in range(steps):
    x, y = get_batch(train_series)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 30 == 29:
        print(f"step {step + 1} train {loss.item():.3f} val {estimate(model):.3f}")
