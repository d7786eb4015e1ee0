"""A classifier that is trained on the negative of its loss."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
generator = torch.Generator().manual_seed(patient.seed)
inputs = torch.randn(640, 16, generator=generator)
labels = (inputs @ torch.randn(16, 4, generator=generator)).argmax(dim=1)

model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
patient.watch(model)

for _ in range(4):
    for rows in torch.randperm(len(inputs), generator=generator).split(32):
        loss = functional.cross_entropy(model(inputs[rows]), labels[rows])
        objective = -loss if patient.broken else loss
        optimizer.zero_grad()
        objective.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
