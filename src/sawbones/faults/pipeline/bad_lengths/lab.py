"""A split whose parts are both rounded down."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(645, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
rows = TensorDataset(inputs, labels)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

num_training = int(len(rows) * 0.9)
if patient.broken:
    training, held_out = random_split(rows, [num_training, int(len(rows) * 0.1)])
else:
    training, held_out = random_split(rows, [num_training, len(rows) - num_training])

for _ in range(4):
    for inputs_BC, labels_B in DataLoader(training, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
