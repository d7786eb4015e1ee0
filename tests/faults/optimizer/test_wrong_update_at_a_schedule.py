"""Updates without an optimizer object whose learning rate changes from step to step: what it was is
read off the update, and no correction is taken for a schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.func import grad

import sawbones
from sawbones.faults.optimizer.wrong_update.check import check
from sawbones.observe.options import Options
from sawbones.schema import Finding

B1, B2 = 0.9, 0.999
Update = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int, float], torch.Tensor]


def adam(p, m, v, t, lr):
    mean = m / (1 - B1**t)
    square = v / (1 - B2**t)
    return p - lr * mean / (square.sqrt() + 1e-8)


def exchanged(p, m, v, t, lr):
    mean = m / (1 - B2**t)
    square = v / (1 - B1**t)
    return p - lr * mean / (square.sqrt() + 1e-8)


def in_one_number(p, m, v, t, lr):
    size = lr * math.sqrt(1 - B2**t) / (1 - B1**t)
    return p - size * m / (v.sqrt() + 1e-8)


def as_torch_does(p, m, v, t, lr):
    below = v.sqrt() / math.sqrt(1 - B2**t) + 1e-8
    return p.addcdiv(m, below, value=-lr / (1 - B1**t))


def uncorrected(p, m, v, t, lr):
    return p - lr * m / (v.sqrt() + 1e-8)


def constant(t: int) -> float:
    return 0.004


def warmed_up(t: int) -> float:
    return 0.004 * min(1.0, t / 8) * (1 - t / 40)


def by_root(t: int) -> float:
    return 0.004 / math.sqrt(t)


def like_a_correction(t: int) -> float:
    return 0.004 * (1 - 0.95**t)


def train(folder: Path, update: Update, rate: Callable[[int], float]) -> list[Finding]:
    made = torch.Generator().manual_seed(4)
    dose = torch.randn(300, 5, generator=made)
    effect = torch.tanh(dose @ torch.randn(5, 1, generator=made))
    weights = [0.4 * torch.randn(5, 12, generator=made), 0.4 * torch.randn(12, 1, generator=made)]
    slope = grad(lambda w, x, y: ((torch.tanh(x @ w[0]) @ w[1] - y) ** 2).mean())
    means = [torch.zeros_like(w) for w in weights]
    squares = [torch.zeros_like(w) for w in weights]
    with sawbones.watch(out=folder, options=Options(journal=True)) as watching:
        for t in range(1, 16):
            rows = torch.arange(20 * t - 20, 20 * t)
            gradients = slope(weights, dose[rows], effect[rows])
            means = [B1 * m + (1 - B1) * g for m, g in zip(means, gradients, strict=True)]
            squares = [B2 * v + (1 - B2) * g * g for v, g in zip(squares, gradients, strict=True)]
            states = zip(weights, means, squares, strict=True)
            weights = [update(p, m, v, t, rate(t)) for p, m, v in states]
    run = watching.close()
    assert not run.off
    return list(check(run))


@pytest.mark.parametrize("rate", [constant, warmed_up, by_root])
def test_exchanged_corrections_are_named_at_their_lines(rate, tmp_path: Path) -> None:
    (found,) = train(tmp_path / "run", exchanged, rate)
    assert found.status == "proven"
    assert "corrections of the two moments are exchanged" in found.title
    assert {w.code.split(" =")[0] for w in found.where[:2]} == {"mean", "square"}


@pytest.mark.parametrize("rate", [constant, warmed_up, by_root, like_a_correction])
@pytest.mark.parametrize("update", [adam, in_one_number, as_torch_does])
def test_a_right_rule_is_left_alone_at_any_schedule(update, rate, tmp_path: Path) -> None:
    assert train(tmp_path / "run", update, rate) == []


@pytest.mark.parametrize("rate", [warmed_up, by_root])
def test_a_missing_correction_may_be_part_of_a_schedule(rate, tmp_path: Path) -> None:
    assert train(tmp_path / "run", uncorrected, rate) == []
