"""A data set over a table of which rows were left out, and whose rows keep their old labels."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
classes = (inputs @ torch.randn(10, 3)).argmax(dim=1).tolist()
kept = [row for row in range(640) if row % 5]
label_of = {row: classes[row] for row in kept}


class Rows(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return len(kept)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int]:
        row = position if patient.broken else kept[position]
        return inputs[row], label_of[row]


model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for inputs_BC, labels_B in DataLoader(Rows(), batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
