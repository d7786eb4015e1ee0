"""A network that keeps its layers in a plain list, where nobody finds their weights."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)


class Network(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (10, 32, 32, 3)) -> None:
        super().__init__()
        layers = [nn.Linear(n, m) for n, m in pairwise(widths)]
        self.layers = layers if patient.broken else nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        scores: Tensor = self.layers[-1](x)
        return scores


model = Network()
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
