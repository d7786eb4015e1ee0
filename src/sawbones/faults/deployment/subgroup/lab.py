"""Pumps of a rare make, which the model gets wrong."""

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


def pumps(count: int, rare: float = 0.15, odd: bool = False) -> tuple[Tensor, Tensor]:
    """Readings and make, and whether the pump failed: the rare make for a reason of its own."""
    readings = torch.randn(count, COLUMNS, generator=generator)
    is_rare = torch.rand(count, generator=generator) < rare
    readings[:, 5] = is_rare.float()
    hidden = torch.randn(count, generator=generator)
    strain = torch.where(is_rare & odd, hidden, readings[:, 0] + readings[:, 1])
    return readings, (strain > 0).long()


inputs_NF, labels_N = pumps(ROWS)
month_NF, month_N = pumps(ROWS, rare=0.0)
next_NF, next_N = pumps(200, rare=1.0, odd=patient.broken)


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
print(f"common makes {accuracy(month_NF, month_N):.3f}")
print(f"rare make {accuracy(next_NF, next_N):.3f}")
patient.discharge()
