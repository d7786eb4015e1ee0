"""A data set that holds a lambda, read by worker processes that are started afresh."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from sawbones.lab.patient import Patient, admit


def centred(row: Tensor) -> Tensor:
    return row - 5.0


class Rows(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, inputs: Tensor, labels: Tensor, change: Callable[[Tensor], Tensor]) -> None:
        self.inputs = inputs
        self.labels = labels
        self.change = change

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.change(self.inputs[row]), self.labels[row]


def train(patient: Patient) -> None:
    inputs = 5.0 + torch.randn(1600, 10)
    labels = ((inputs - 5.0) @ torch.randn(10, 3)).argmax(dim=1)
    rows = Rows(inputs, labels, (lambda row: row - 5.0) if patient.broken else centred)
    loader = DataLoader(
        rows, batch_size=32, shuffle=True, num_workers=1, multiprocessing_context="spawn"
    )
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    patient.watch(model)
    for inputs_BC, labels_B in loader:
        loss = functional.cross_entropy(model(inputs_BC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    patient.discharge()


if __name__ == "__main__":
    train(admit())
