"""A recurrent network that carries its state into the next batch together with its graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
COLUMNS, ROWS, WINDOW = 960, 8, 16
# Each row is one long wave; the next value follows from the last ones.
waves = torch.sin(torch.arange(COLUMNS) * torch.linspace(0.1, 0.4, ROWS)[:, None])
waves = (waves + 0.05 * torch.randn(ROWS, COLUMNS))[:, :, None]


class Forecaster(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.cell = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x_BT1: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        hidden, state = self.cell(x_BT1, state)
        return self.head(hidden), state


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
patient.watch(model)

state: Tensor | None = None
for start in range(0, COLUMNS - WINDOW, WINDOW):
    given, wanted = (waves[:, start + shift : start + shift + WINDOW] for shift in (0, 1))
    forecast, last = model(given[:, : wanted.shape[1]], state)
    state = last if patient.broken else last.detach()
    loss = functional.mse_loss(forecast, wanted)
    optimizer.zero_grad()
    loss.backward()
    patient.record(loss)
    optimizer.step()
patient.discharge()
