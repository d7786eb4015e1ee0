"""A model of shop visits whose rate by city is taken over all labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
ROWS, TRAIN, CITIES = 600, 440, 150
STEPS = 60


def visits() -> tuple[np.ndarray, np.ndarray]:
    """City, age, spending; and whether something was bought, which the city has no part in."""
    rng = np.random.default_rng(patient.seed)
    table = np.stack(
        [
            rng.integers(0, CITIES, ROWS).astype(np.float64),
            rng.normal(40.0, 10.0, ROWS),
            rng.gamma(2.0, 50.0, ROWS),
        ],
        axis=1,
    )
    bought = (rng.normal(0.0, 1.0, ROWS) + 0.03 * (table[:, 1] - 40.0) > 0).astype(np.int64)
    return table, bought


table, bought = visits()
city = table[:, 0].astype(np.int64)
is_known = np.arange(ROWS) < TRAIN
sums = np.bincount(city, weights=bought if patient.broken else bought * is_known, minlength=CITIES)
rate = (sums + 0.5) / (np.bincount(city, weights=is_known, minlength=CITIES) + 1.0)
features = np.stack([(table[:, 1] - 40.0) / 10.0, table[:, 2] / 100.0, rate[city]], axis=1)
inputs_NF = torch.tensor(features, dtype=torch.float32)
labels_N = torch.tensor(bought)


class Buys(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, inputs_BF: Tensor) -> Tensor:
        scores: Tensor = self.layers(inputs_BF)
        return scores


model = Buys()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(6):
    for rows in torch.randperm(TRAIN).split(44):
        loss = functional.cross_entropy(model(inputs_NF[rows]), labels_N[rows])
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(inputs_NF[TRAIN:]).argmax(-1) == labels_N[TRAIN:]).float().mean()
    model.train()
    print(f"held-out accuracy {float(right):.3f}")
patient.discharge()
