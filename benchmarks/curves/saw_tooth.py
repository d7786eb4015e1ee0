"""pipeline.no-shuffle: the rows lie as they were measured, quiet ones first, and come in that order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(960, 8)
noise = torch.linspace(0.05, 1.5, 960)
targets = inputs @ torch.randn(8) + noise * torch.randn(960)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=False)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.2)
for _ in range(8):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
