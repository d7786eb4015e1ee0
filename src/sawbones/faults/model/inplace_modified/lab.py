"""A gated network that scales the gate's own output in place, which its backward pass needs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (torch.tanh(inputs @ torch.randn(10, 16)) @ torch.randn(16, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)


class Gated(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.value = nn.Linear(10, width)
        self.gate = nn.Linear(10, width)
        self.scale = nn.Parameter(torch.ones(width))
        self.head = nn.Linear(width, 3)

    def forward(self, x_BC: Tensor) -> Tensor:
        opened = torch.sigmoid(self.gate(x_BC))
        if patient.broken:
            opened *= self.scale
        else:
            opened = opened * self.scale
        mixed = torch.tanh(self.value(x_BC)) * opened
        scores: Tensor = self.head(mixed)
        return scores


model = Gated()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for x_BC, labels_B in loader:
        loss = functional.cross_entropy(model(x_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
