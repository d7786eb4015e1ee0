"""A regression on a NumPy table, which holds double precision."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
numbers = np.random.default_rng(patient.seed)
table = numbers.normal(size=(640, 10))
table = (table - table.mean(axis=0)) / table.std(axis=0)
prices = np.tanh(table[:, :4]).sum(axis=1, keepdims=True)

inputs = torch.from_numpy(table if patient.broken else table.astype(np.float32))
targets = torch.from_numpy(prices).float()
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for inputs_BC, targets_B1 in loader:
        loss = functional.mse_loss(model(inputs_BC), targets_B1)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
