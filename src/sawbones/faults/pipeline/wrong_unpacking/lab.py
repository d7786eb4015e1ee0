"""A data set that gives row, label and row number, and a loop that takes two of the three."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)


class Rows(Dataset[tuple[Tensor, Tensor, int]]):
    """The row's number is there to look a row up again."""

    def __len__(self) -> int:
        return len(inputs)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor, int]:
        return inputs[row], labels[row], row


loader = DataLoader(Rows(), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(3):
    for batch in loader:
        inputs_BC, labels_B = batch if patient.broken else batch[:2]
        loss = functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
