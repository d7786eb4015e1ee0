"""Pumps that run hotter the next month than any that the model was trained on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sawbones.lab.patient import admit
from sawbones.lab.pumps import Fails

patient = admit()
generator = torch.Generator().manual_seed(patient.seed)
COLUMNS, ROWS = 6, 600
STEPS = 70


def pumps(count: int, hotter: float = 0.0) -> tuple[Tensor, Tensor]:
    """Readings, and whether the pump failed: above a limit that depends on the other readings."""
    readings = torch.randn(count, COLUMNS, generator=generator)
    readings[:, 0] += hotter
    strain = readings[:, 0] * torch.sin(1.5 * readings[:, 0]) + 0.3 * readings[:, 1]
    return readings, (strain > 0.3).long()


inputs_NF, labels_N = pumps(ROWS)
month_NF, month_N = pumps(ROWS)
next_NF, next_N = pumps(ROWS, hotter=3.0 if patient.broken else 0.0)


def accuracy(rows: Tensor, failed: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        right = (model(rows).argmax(-1) == failed).float().mean()
    model.train()
    return float(right)


model = Fails(COLUMNS)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(5):
    for rows in torch.randperm(len(inputs_NF), generator=generator).split(50):
        loss = functional.cross_entropy(model(inputs_NF[rows]), labels_N[rows])
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
print(f"this month {accuracy(month_NF, month_N):.3f}")
print(f"next month {accuracy(next_NF, next_N):.3f}")
patient.discharge()
