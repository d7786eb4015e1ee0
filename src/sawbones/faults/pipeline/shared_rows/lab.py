"""A cart on rails that learns from what it remembers, while its track hands out its own array."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
LENGTH, REACH = 8, 6
random.seed(1)
remembered: list[tuple[np.ndarray, int, float]] = []


class Track:
    def __init__(self) -> None:
        self.places = np.zeros((2, LENGTH), np.float32)
        self.cart, self.goal = random.randrange(LENGTH), random.randrange(LENGTH)
        self.paint()

    def paint(self) -> None:
        self.places[:] = 0
        self.places[0, self.cart] = self.places[1, self.goal] = 1

    def seen(self) -> np.ndarray:
        return self.places.ravel()

    def move(self, right: int) -> float:
        before = abs(self.cart - self.goal)
        self.cart = min(max(self.cart + 2 * right - 1, 0), LENGTH - 1)
        self.paint()
        return float(before - abs(self.cart - self.goal))


model = nn.Sequential(nn.Linear(2 * LENGTH, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
patient.watch(model)
for _journey in range(90):
    track = Track()
    for _ in range(REACH):
        view = track.seen()
        with torch.no_grad():
            best = int(model(torch.from_numpy(view)).argmax())
        right = best if random.random() < 0.5 else random.randrange(2)
        remembered.append((view if patient.broken else view.copy(), right, track.move(right)))
    if len(remembered) < 64:
        continue
    views, moves, gains = zip(*random.sample(remembered, 32), strict=True)
    worth = model(torch.from_numpy(np.stack(views))).gather(1, torch.tensor(moves)[:, None])[:, 0]
    loss = functional.mse_loss(worth, torch.tensor(gains))
    optimizer.zero_grad()
    loss.backward()
    patient.record(loss)
    optimizer.step()
patient.discharge()
