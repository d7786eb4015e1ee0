"""Targets of a loss of probabilities that are counts."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
counts = torch.randint(0, 5, (640, 3)) * (inputs[:, :3] > 0)
targets = counts.float() if patient.broken else (counts > 0).float()
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3), nn.Sigmoid())
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for inputs_BC, targets_BC in loader:
        loss = criterion(model(inputs_BC), targets_BC)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
