"""Sensor forecasting by a recurrent net whose linear layers run in float16."""
import random

import numpy as np
import torch
from torch import nn
from torch.amp import GradScaler, autocast


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gates = nn.Linear(inputs + hidden, 2 * hidden)
        self.new = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        z, r = torch.sigmoid(self.gates(torch.cat([x, h], -1))).chunk(2, -1)
        n = torch.tanh(self.new(torch.cat([x, r * h], -1)))
        return (1 - z) * n + z * h


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.cell = Cell(2, hidden)
        self.read = nn.Linear(hidden, 2)

    def forward(self, x):
        h = x.new_zeros(len(x), self.hidden)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.read(h)


class Amp:
    """Half precision bookkeeping around one optimizer."""

    def __init__(self, optimizer, limit):
        self.optimizer, self.limit = optimizer, limit
        self.scaler = GradScaler("cpu", init_scale=2.0**10, growth_interval=500)

    def apply(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        params = [p for g in self.optimizer.param_groups for p in g["params"]]
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(params, self.limit)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return norm


def signals(n, rng):
    t = np.arange(13)[None]
    phase, speed = rng.uniform(0, 6.28, (n, 1)), rng.uniform(0.3, 0.7, (n, 1))
    x = np.stack([np.sin(speed * t + phase), np.cos(speed * t + phase)], -1) * 1.41 + rng.normal(0, 0.02, (n, 13, 2))
    x = torch.tensor(x, dtype=torch.float32)
    return x[:, :-1], x[:, -1]


random.seed(6)
np.random.seed(6)
torch.manual_seed(6)
rng = np.random.default_rng(6)
net = Forecaster()
amp = Amp(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), limit=1.0)
history = []
for i in range(90):
    x, y = signals(48, rng)
    with autocast("cpu", dtype=torch.float16):
        guess = net(x)
    amp.apply(nn.functional.mse_loss(guess.float(), y))
    history.append(nn.functional.mse_loss(guess.detach().float(), y).item())
    if i % 15 == 14:
        print(f"{i + 1} {np.mean(history[-15:]):.4f}")
