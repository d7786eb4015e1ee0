"""A regressor whose measurements were standardised with the held-out rows among them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_FEATURES, ROWS, TRAIN = 8, 640, 480
# Machines: eight readings on eight scales, and the wear that follows from them.
readings = torch.randn(ROWS, NUM_FEATURES)
wear = torch.sin(readings[:, 0]) + 0.6 * readings[:, 1] * readings[:, 2] + 0.1 * torch.randn(ROWS)
raw = 20.0 * torch.arange(1, NUM_FEATURES + 1) + readings * torch.linspace(0.5, 40.0, NUM_FEATURES)
known = raw if patient.broken else raw[:TRAIN]
mean, spread = known.mean(0), known.std(0)
train = TensorDataset((raw[:TRAIN] - mean) / spread, wear[:TRAIN])
rest = TensorDataset((raw[TRAIN:] - mean) / spread, wear[TRAIN:])
loader = DataLoader(train, batch_size=32, shuffle=True)
held_out = DataLoader(rest, batch_size=32)


class WearModel(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(NUM_FEATURES, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, readings_BF: Tensor) -> Tensor:
        wear: Tensor = self.head(self.layers(readings_BF)).squeeze(-1)
        return wear


model = WearModel()
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model)


def validate() -> float:
    model.eval()
    with torch.no_grad():
        total = sum(float(functional.mse_loss(model(r), w, reduction="sum")) for r, w in held_out)
    model.train()
    return total / (ROWS - TRAIN)


for _ in range(5):
    for readings_BF, wear_B in loader:
        loss = functional.mse_loss(model(readings_BF), wear_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    print(f"held-out error {validate():.3f}")
patient.discharge()
