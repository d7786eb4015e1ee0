"""A smooth activation whose backward pass forgets a factor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
generator = torch.Generator().manual_seed(patient.seed)
inputs = torch.randn(512, 12, generator=generator)
hidden = torch.randn(12, 24, generator=generator)
labels = (torch.tanh(inputs @ hidden) @ torch.randn(24, 3, generator=generator)).argmax(dim=1)


class Squareplus(torch.autograd.Function):
    """(x + sqrt(x^2 + 4)) / 2, a rectifier without an edge."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        root = (x * x + 4).sqrt()
        ctx.save_for_backward(x, root)
        return (x + root) / 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, root = ctx.saved_tensors
        slope: Tensor = 1 - x / root if patient.broken else 1 + x / root
        return grad * slope / 2


squareplus: Any = Squareplus.apply


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 48)
        self.second = nn.Linear(48, 48)
        self.head = nn.Linear(48, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = squareplus(self.first(x))
        x = squareplus(self.second(x))
        logits: Tensor = self.head(x)
        return logits


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
patient.watch(model)

for _ in range(6):
    for rows in torch.randperm(len(inputs), generator=generator).split(32):
        loss = functional.cross_entropy(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
