"""Pump readings in six micro-batches, whose helper divides the loss that was divided already."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sawbones.lab.patient import admit

patient = admit()
NUM_PARTS, PART = 6, 10
readings = torch.randn(1200, 7)
flow = (readings @ torch.randn(7, 3)).tanh().sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(7, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
patient.watch(model)


def learn_part(loss: Tensor) -> None:
    (loss / NUM_PARTS).backward()


for number, rows in enumerate(torch.randperm(len(readings)).split(PART) * 3, start=1):
    loss = nn.functional.mse_loss(model(readings[rows]), flow[rows])
    learn_part(loss / NUM_PARTS if patient.broken else loss)
    patient.record(loss)
    if number % NUM_PARTS == 0:
        optimizer.step()
        optimizer.zero_grad()
patient.discharge()
