"""An optimizer over a tensor that is the result of a multiplication."""

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
patient.watch(model)
if patient.broken:
    prompt = torch.randn(10, requires_grad=True) * 0.01
else:
    prompt = (torch.randn(10) * 0.01).requires_grad_()
optimizer = torch.optim.Adam([prompt, *model.parameters()], lr=5e-3)

for _ in range(4):
    for inputs_BC, labels_B in loader:
        loss = nn.functional.cross_entropy(model(inputs_BC + prompt), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
