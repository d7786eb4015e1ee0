"""model.bad-init: weights so small that hardly a gradient reaches the layers below, until they have grown."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(3840, 10)
targets = inputs @ torch.randn(10)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=128, shuffle=True)
model = nn.Sequential(
    nn.Linear(10, 48),
    nn.Tanh(),
    nn.Linear(48, 48),
    nn.Tanh(),
    nn.Linear(48, 48),
    nn.Tanh(),
    nn.Linear(48, 1),
)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.mul_(0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(16):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
