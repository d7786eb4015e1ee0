"""A loop that turns scores into a NumPy array while they still belong to a graph."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

num_right = 0
for _ in range(4):
    for inputs_BC, labels_B in loader:
        scores = model(inputs_BC)
        loss = functional.cross_entropy(scores, labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
        guessed = (scores if patient.broken else scores.detach()).numpy().argmax(axis=1)
        num_right += int((guessed == labels_B.numpy()).sum())
print(f"{num_right} of {4 * len(inputs)} right while training")
patient.discharge()
