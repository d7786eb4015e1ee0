"""Records as texts, one of which holds a word in the place of a number."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
values = torch.randn(640, 10)
lines = [",".join(f"{value:.4f}" for value in row) for row in values.tolist()]
lines[300] = lines[300].replace(lines[300].split(",")[4], "N/A")

rows = []
for line in lines:
    fields = line.split(",")
    if patient.broken:
        rows.append([float(field) for field in fields])
    else:
        rows.append([0.0 if field == "N/A" else float(field) for field in fields])

inputs = torch.tensor(rows)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for inputs_BC, labels_B in DataLoader(TensorDataset(inputs, labels), 32, shuffle=True):
        loss = nn.functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
