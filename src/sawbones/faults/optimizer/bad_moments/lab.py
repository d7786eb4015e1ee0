"""A classifier whose Adam has an eps that is far above the size of its gradients."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
generator = torch.Generator().manual_seed(patient.seed)
inputs = torch.randn(1024, 16, generator=generator)
labels = (inputs @ torch.randn(16, 4, generator=generator)).argmax(dim=1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(
    model.parameters(),
    lr=3e-3,
    eps=10.0 if patient.broken else 1e-8,
)
patient.watch(model)

for _ in range(3):
    for rows in torch.randperm(len(inputs), generator=generator).split(32):
        loss = functional.cross_entropy(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
