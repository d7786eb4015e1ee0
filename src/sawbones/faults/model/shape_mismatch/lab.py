"""A sequence classifier that averages over channels where it means time, and adds the result."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, COLUMNS, CHANNELS = 640, 12, 6
sequences = torch.randn(ROWS, COLUMNS, CHANNELS) + torch.randn(ROWS, 1, CHANNELS)
labels = sequences.mean(1)[:, :3].argmax(dim=1)
loader = DataLoader(TensorDataset(sequences, labels), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.inwards = nn.Linear(CHANNELS, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x_BTC: Tensor) -> Tensor:
        x = torch.relu(self.inwards(x_BTC))
        context = x.mean(dim=2 if patient.broken else 1)
        scale = x.abs().amax(dim=(1, 2), keepdim=True) + 1.0
        x = self.mix(x / scale)
        x = torch.relu(x + context[:, None])
        scores: Tensor = self.head(x.mean(1))
        return scores


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for x_BTC, labels_B in loader:
        loss = functional.cross_entropy(model(x_BTC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
