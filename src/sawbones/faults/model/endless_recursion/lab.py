"""A head that keeps the model that it belongs to as an attribute."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 3)

    def belongs_to(self, model: nn.Module) -> None:
        if patient.broken:
            self.owner: Any = model
        else:
            self.owner = [model]

    def forward(self, hidden_BC: torch.Tensor) -> torch.Tensor:
        owner = self.owner if patient.broken else self.owner[0]
        scores_BC: torch.Tensor = self.linear(hidden_BC) * owner.scale
        return scores_BC


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.body = nn.Linear(10, 32)
        self.head = Head()
        self.head.belongs_to(self)

    def forward(self, inputs_BC: torch.Tensor) -> torch.Tensor:
        scores_BC: torch.Tensor = self.head(torch.relu(self.body(inputs_BC)))
        return scores_BC


model = Model()
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for inputs_BC, labels_B in loader:
        loss = nn.functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
