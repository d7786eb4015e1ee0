"""A validation set of fewer rows than one batch, under a loader that leaves short batches out."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(652, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
training = TensorDataset(inputs[:640], labels[:640])
held_out = TensorDataset(inputs[640:], labels[640:])
loader = DataLoader(training, batch_size=32, shuffle=True)
validation = DataLoader(held_out, batch_size=32, drop_last=patient.broken)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    model.train()
    for inputs_BC, labels_B in loader:
        loss = nn.functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    model.eval()
    num_right = num_rows = 0
    with torch.no_grad():
        for inputs_BC, labels_B in validation:
            num_right += int((model(inputs_BC).argmax(dim=1) == labels_B).sum())
            num_rows += len(labels_B)
    print(f"validation accuracy {num_right / num_rows:.3f}")
patient.discharge()
