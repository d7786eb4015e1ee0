"""Vibration of pumps, told apart by a small network and scored by the average of its weights."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
KINDS, CHANNELS = 4, 10
kind = torch.randint(0, KINDS, (900,))
signals = 5 + 2 * torch.randn(KINDS, CHANNELS)[kind] + torch.randn(900, CHANNELS)
held = slice(700, None)
model = nn.Sequential(nn.Linear(CHANNELS, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, KINDS))
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
patient.watch(model)
for step in range(70):
    rows = torch.randint(0, 700, (40,))
    loss = functional.cross_entropy(model(signals[rows]), kind[rows])
    optimizer.zero_grad()
    loss.backward()
    patient.record(loss)
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs, 0.1)
        if not patient.broken:
            for kept, gathered in zip(average.buffers(), model.buffers(), strict=True):
                kept.copy_(gathered)
    if step % 20 == 19:
        with torch.no_grad():
            answers = average(signals[held])
        print(step, (answers.argmax(1) == kind[held]).float().mean().item())
patient.discharge()
