"""Optimizers that step by calling another one, and optimizers that step on tensors of their own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import sawbones
from sawbones.observe.options import Options
from sawbones.observe.signals.shards import sharded
from sawbones.store import read_run

SHALLOW = Options(deep_steps=(), deep_every=0)


class Wrapper(torch.optim.Optimizer):
    """Holds all parameters and lets two others, each with its part, do the work."""

    def __init__(self, params: Any) -> None:
        params = list(params)
        super().__init__(params, {})
        self.parts = [torch.optim.SGD(params[:1], lr=0.1), torch.optim.SGD(params[1:], lr=0.1)]
        self.fails_at = -1
        self.calls = 0

    def step(self, closure: Any = None) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise ArithmeticError("a step that fails")
        for part in self.parts:
            part.step()


def train(folder: Path, fails_at: int = -1) -> Any:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    wrapper, other = (
        Wrapper(model.parameters()),
        torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1),
    )
    wrapper.fails_at = fails_at
    with sawbones.watch(model, wrapper, out=folder, options=SHALLOW):
        for _ in range(6):
            loss = model(torch.randn(5, 4)).square().mean()
            wrapper.zero_grad()
            loss.backward()
            try:
                wrapper.step()
            except ArithmeticError:
                loss = model(torch.randn(5, 4)).square().mean()
                loss.backward()
                other.step()
    return read_run(folder)


def test_the_outermost_optimizer_is_the_step(tmp_path: Path) -> None:
    run = train(tmp_path)
    assert run.num_steps == 6
    assert run.statistics["grad_l2"].shape == (6, 4)
    assert (run.statistics["grad_l2"] > 0).all()


def test_after_a_step_that_raised_the_next_optimizer_is_no_part_of_it(tmp_path: Path) -> None:
    run = train(tmp_path, fails_at=3)
    assert run.num_steps == 6
    assert len({row.data["optimizer"] for row in run.of_kind("step")}) == 2


@pytest.mark.parametrize("own", [True, False])
def test_parameters_whose_optimizer_holds_other_tensors_are_parts(own: bool) -> None:
    model = nn.Linear(3, 2)
    held = torch.optim.SGD(model.parameters() if own else [nn.Parameter(torch.zeros(8))], lr=0.1)
    census = SimpleNamespace(
        trainable=lambda: list(model.parameters()), roots=lambda: [model], optimizers=lambda: [held]
    )
    assert len(sharded(SimpleNamespace(census=census))) == (0 if own else 2)  # type: ignore[arg-type]
