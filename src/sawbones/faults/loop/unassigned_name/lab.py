"""A loop that keeps the best loss, which only an evaluation would have computed."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)


def train(evaluates: bool) -> float:
    best = 100.0
    if not patient.broken:
        held_out_loss = best
    for _ in range(4):
        for inputs_BC, labels_B in loader:
            loss = nn.functional.cross_entropy(model(inputs_BC), labels_B)
            optimizer.zero_grad()
            loss.backward()
            patient.record(loss)
            optimizer.step()
        if evaluates:
            held_out_loss = float(nn.functional.cross_entropy(model(inputs), labels))
        best = min(best, held_out_loss)
    return best


train(evaluates=False)
patient.discharge()
