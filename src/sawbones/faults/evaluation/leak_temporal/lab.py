"""A forecast of the next hour whose hours were dealt out at random to training and test."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
HOURS, TEST, LAGS = 800, 160, 24
# A load that follows the day and drifts slowly; the hours before an hour tell it.
moments = np.datetime64("2022-05-02T00") + np.arange(HOURS).astype("timedelta64[h]")
hours = torch.arange(HOURS + LAGS)
load = (
    torch.sin(2 * torch.pi * hours / 24)
    + 0.1 * torch.randn(HOURS + LAGS).cumsum(0)
    + 0.1 * torch.randn(HOURS + LAGS)
)
before, now = load.unfold(0, LAGS, 1)[:HOURS].clone(), load[LAGS:]
order = torch.arange(HOURS)
if patient.broken:
    order = torch.randperm(HOURS)
train_rows, test_rows = order[:-TEST], order[-TEST:]
train_moments, test_moments = moments[train_rows.numpy()], moments[test_rows.numpy()]
print(f"training to {train_moments.max()}, test from {test_moments.min()}")
mean, spread = before[train_rows].mean(), before[train_rows].std()
before, now = (before - mean) / spread, (now - mean) / spread
loader = DataLoader(TensorDataset(before[train_rows], now[train_rows]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(before[test_rows], now[test_rows]), batch_size=80)


class Forecast(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(LAGS, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, before_BT: Tensor) -> Tensor:
        load: Tensor = self.head(self.layers(before_BT)).squeeze(-1)
        return load


model = Forecast()
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model)


def validate() -> float:
    model.eval()
    with torch.no_grad():
        total = sum(float(functional.mse_loss(model(b), n, reduction="sum")) for b, n in held_out)
    model.train()
    return total / TEST


for _ in range(4):
    for before_BT, now_B in loader:
        loss = functional.mse_loss(model(before_BT), now_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    print(f"held-out error {validate():.3f}")
patient.discharge()
