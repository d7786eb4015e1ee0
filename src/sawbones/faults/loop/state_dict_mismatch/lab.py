"""A second stage that loads the weights of a first one, saved with the names of its wrapper."""

from __future__ import annotations

import io

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 10)
labels = (inputs @ torch.randn(10, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)


class Wrapped(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.module(x)
        return scores


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))


def train(model: nn.Module, lr: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    patient.watch(model)
    for _ in range(2):
        for inputs_BC, labels_B in loader:
            loss = functional.cross_entropy(model(inputs_BC), labels_B)
            optimizer.zero_grad()
            loss.backward()
            patient.record(loss)
            optimizer.step()


first = Wrapped(network())
train(first, lr=5e-3)
saved = io.BytesIO()
torch.save(first.state_dict() if patient.broken else first.module.state_dict(), saved)

saved.seek(0)
second = network()
second.load_state_dict(torch.load(saved, weights_only=True))
train(second, lr=1e-3)
patient.discharge()
