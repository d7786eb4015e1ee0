"""Remedies that change settings of an optimizer: seen by its steps, and gone after them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest
import torch
from torch.optim import optimizer as optimizers


@pytest.fixture(autouse=True)
def _no_hooks_left() -> Iterator[None]:
    both = (optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks)
    kept = [dict(hooks) for hooks in both]
    yield
    for hooks, before in zip(both, kept, strict=True):
        hooks.clear()
        hooks.update(before)


def _seen_by_steps(remedy: str, num: int = 1, **params: object) -> list[float]:
    """The change that each step makes to a parameter of 1 with a gradient of 1."""
    importlib.import_module(f"sawbones.trials.remedies.{remedy}").install(None, **params)
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1, weight_decay=0.5)
    seen = []
    for _ in range(num):
        parameter.data.fill_(1)
        parameter.grad = torch.ones(1)
        optimizer.step()
        seen.append(round(1 - float(parameter.detach()), 6))
        assert optimizer.param_groups[0]["lr"] == 0.1
        assert optimizer.param_groups[0]["weight_decay"] == 0.5
    return seen


def test_a_smaller_learning_rate_is_seen_by_the_step_only():
    assert _seen_by_steps("learning_rate", factor=0.1) == [0.015]


def test_no_weight_decay_is_seen_by_the_step_only():
    assert _seen_by_steps("weight_decay_off") == [0.1]


def test_a_warm_up_rises_to_what_the_loop_asks_for():
    assert _seen_by_steps("warm_up_added", 4, steps=3) == [0.05, 0.1, 0.15, 0.15]


def test_momentum_is_cut_to_the_usual_and_comes_back():
    importlib.import_module("sawbones.trials.remedies.default_moments").install(None)
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.999)
    for _ in range(2):
        parameter.grad = torch.ones(1)
        optimizer.step()
    assert round(1 - float(parameter.detach()), 6) == 0.29  # 0.1 + 0.1 * (1 + 0.9)
    assert optimizer.param_groups[0]["momentum"] == 0.999
