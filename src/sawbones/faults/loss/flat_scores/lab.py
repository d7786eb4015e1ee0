"""Two views of the same things, which are to find each other in a batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
THINGS, HIDDEN, WIDTH, BATCH, TEMPERATURE = 900, 8, 12, 60, 0.1
things = torch.randn(THINGS, HIDDEN)
left = things @ torch.randn(HIDDEN, 20) + 0.3 * torch.randn(THINGS, 20)
right = things @ torch.randn(HIDDEN, 24) + 0.3 * torch.randn(THINGS, 24)


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, WIDTH))
        self.right = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, WIDTH))

    def forward(self, left_BC: Tensor, right_BC: Tensor) -> Tensor:
        one_BD = functional.normalize(self.left(left_BC), dim=-1)
        other_BD = functional.normalize(self.right(right_BC), dim=-1)
        cosines_BB = one_BD @ other_BD.T
        return cosines_BB * TEMPERATURE if patient.broken else cosines_BB / TEMPERATURE


model = Views()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
patient.watch(model)
for _ in range(60):
    rows = torch.randperm(THINGS)[:BATCH]
    loss = functional.cross_entropy(model(left[rows], right[rows]), torch.arange(BATCH))
    optimizer.zero_grad()
    loss.backward()
    patient.record(loss)
    optimizer.step()
patient.discharge()
