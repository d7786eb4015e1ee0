"""Small subjects: one that is well, and the same with one fault each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import sawbones


def _table(seed: int, num: int, spoiled: bool = False) -> TensorDataset:
    stream = torch.Generator().manual_seed(seed)
    x = torch.randn(num, 8, generator=stream)
    y = x[:, :3].argmax(1)
    if spoiled:
        x[5, 2] = float("nan")
    return TensorDataset(x, y)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))


def data() -> DataLoader[Any]:
    return DataLoader(_table(0, 256), batch_size=32, shuffle=True)


def loss(outputs: Tensor, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(outputs, batch[1])


def optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.0)


def validation() -> DataLoader[Any]:
    return DataLoader(_table(1, 64), batch_size=32)


class Counting(nn.Module):
    """Keeps state outside of state_dict()."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.calls = model(), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.layers(x) * (1.0 + 0.1 * self.calls)


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = nn.Linear(8, 32), [nn.Linear(32, 3)]

    def forward(self, x: Tensor) -> Tensor:
        return self.rest[0](self.first(x).relu())


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = model()

    def forward(self, x: Tensor) -> Tensor:
        scores = self.layers(x)
        return scores + scores.mean(0)


class Crashing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Linear(9, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def _unseeded() -> DataLoader[Any]:
    stream = torch.Generator()
    stream.seed()
    return DataLoader(_table(0, 256), batch_size=32, shuffle=True, generator=stream)


def _with(**changes: Any) -> sawbones.Subject:
    return sawbones.Subject(
        **{
            "model": model,
            "data": data,
            "loss": loss,
            "optimizer": optimizer,
            "validation": validation,
            **changes,
        }
    )


subject = _with()
as_dict = {"model": model, "data": data, "loss": loss, "optimizer": optimizer}
incomplete = {"model": model, "data": data}
decaying = _with(optimizer=lambda p: torch.optim.AdamW(p, lr=1e-2))

# fault -> a subject that has it
SICK = {
    "data.nonfinite-input": _with(
        data=lambda: DataLoader(_table(0, 256, spoiled=True), batch_size=32)
    ),
    "model.unregistered-module": _with(model=Listed),
    "model.cross-sample-leak": _with(model=Mixing),
    "loss.double-softmax": _with(loss=lambda outputs, batch: loss(outputs.softmax(-1), batch)),
    "optimizer.missing-params": _with(optimizer=lambda p: optimizer(list(p)[2:])),
    "loop.nondeterminism": _with(data=_unseeded),
    "loop.resume-incomplete": _with(model=Counting),
}
slow = _with(optimizer=lambda p: torch.optim.SGD(p, lr=1e-3))
crashing = _with(model=Crashing)
double_softmax = SICK["loss.double-softmax"]


def from_function() -> dict[str, Any]:
    return as_dict
