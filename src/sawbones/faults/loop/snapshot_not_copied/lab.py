"""A small classifier that is to end with the weights of its best epoch."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

STEPS = 70  # more than there are: the weights are put back after the last
patient = admit()
inputs = torch.randn(420, 12)
labels = (inputs @ torch.randn(12, 3) + torch.randn(420, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs[:300], labels[:300]), batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
patient.watch(model)


def held_out_loss() -> float:
    model.eval()
    with torch.no_grad():
        loss = functional.cross_entropy(model(inputs[300:]), labels[300:])
    model.train()
    return float(loss)


lowest, best = float("inf"), model.state_dict()
for number in range(6):
    for inputs_BC, labels_B in loader:
        loss = functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    now = held_out_loss()
    print(f"epoch {number}: held-out loss {now:.3f}")
    if now < lowest:
        lowest = now
        best = model.state_dict() if patient.broken else copy.deepcopy(model.state_dict())
model.load_state_dict(best)
print(f"held-out loss of the best: {held_out_loss():.3f}")
patient.discharge()
