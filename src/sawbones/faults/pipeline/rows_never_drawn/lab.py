"""Kinds of bearings, rare ones among them, drawn by weights."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from sawbones.lab.patient import admit

patient = admit()
KINDS, FEATURES = 4, 9
kinds = torch.multinomial(torch.tensor([0.6, 0.25, 0.1, 0.05]), 480, replacement=True)
kinds[:KINDS] = torch.arange(KINDS)
features = 2 * torch.randn(KINDS, FEATURES)[kinds] + torch.randn(len(kinds), FEATURES)
rarity = 1 / torch.bincount(kinds).float()
weights = rarity if patient.broken else rarity[kinds]
sampler = WeightedRandomSampler(weights.tolist(), num_samples=len(kinds))
loader = DataLoader(TensorDataset(features, kinds), batch_size=24, sampler=sampler)
model = nn.Sequential(nn.Linear(FEATURES, 24), nn.ReLU(), nn.Linear(24, KINDS))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
patient.watch(model)
for _ in range(3):
    for rows, wanted in loader:
        loss = functional.cross_entropy(model(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
