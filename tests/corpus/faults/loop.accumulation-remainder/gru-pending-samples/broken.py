"""Forecast the next value of a noisy oscillator with a GRU; gradients are averaged over 96 windows per update."""
import math
import random

import torch
from torch import nn

random.seed(41)
torch.manual_seed(41)

WINDOW = 16
MICRO = 16
PER_UPDATE = 96


def oscillator(length):
    values, position, speed = [], 1.0, 0.0
    for _ in range(length):
        speed += -0.25 * position + random.gauss(0, 0.05)
        position += speed
        speed *= 0.998
        values.append(position)
    series = torch.tensor(values)
    return (series - series.mean()) / series.std()


def windows(series):
    return series.unfold(0, WINDOW + 1, 1)


class Forecaster(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.rnn = nn.GRU(1, size)
        self.head = nn.Linear(size, 1)

    def forward(self, x):
        # time first: (T, B, 1)
        out, _ = self.rnn(x.t().unsqueeze(-1))
        return self.head(out[-1]).squeeze(-1)


class Accumulator:
    """Sums sample losses until enough of them are in, then averages the gradients and updates."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.pending = 0

    def add(self, loss_sum, count):
        loss_sum.backward()
        self.pending += count
        if self.pending >= PER_UPDATE:
            self.apply()

    def apply(self):
        for p in self.model.parameters():
            p.grad.div_(self.pending)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.reset()

    def reset(self):
        self.optimizer.zero_grad()
        self.pending = 0


data = windows(oscillator(1100 + 2 * WINDOW))
train, held_out = data[:880], data[880 + WINDOW :]
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-2)
accumulator = Accumulator(model, optimizer)

for epoch in range(6):
    model.train()
    accumulator.reset()
    running = 0.0
    for rows in torch.randperm(len(train)).split(MICRO):
        batch = train[rows]
        error = (model(batch[:, :-1]) - batch[:, -1]).pow(2).sum()
        accumulator.add(error, len(rows))
        running += error.item()
    model.eval()
    with torch.no_grad():
        rmse = math.sqrt((model(held_out[:, :-1]) - held_out[:, -1]).pow(2).mean().item())
    print(f"epoch {epoch} train mse {running / len(train):.4f} held-out rmse {rmse:.4f}")
