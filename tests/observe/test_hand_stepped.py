"""Loops without an optimizer: their deep steps follow a whole forward pass."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import sawbones
from sawbones.faults import read
from sawbones.observe.options import Options

DEEP = Options(deep_steps=(0, 1, 2), deep_every=0, journal=True)
X = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
Y = torch.arange(40) % 2


def _train(tmp_path, params, scores, steps: int = 6):
    with sawbones.watch(out=tmp_path / "run", options=DEEP) as watching:
        for _ in range(steps):
            F.cross_entropy(scores(X), Y).backward()
            with torch.no_grad():
                for p in params:
                    p -= 0.1 * p.grad
                    p.grad = None
    return watching.close()


def _bare(scale: float):
    first = (scale * torch.randn(3, 8)).requires_grad_()
    second = (scale * torch.randn(8, 2)).requires_grad_()
    bias = torch.zeros(2, requires_grad=True)
    return [first, second, bias], lambda x: torch.tanh(x @ first) @ second + bias


def test_bare_parameters_are_traced_from_the_second_step_on(tmp_path):
    run = _train(tmp_path, *_bare(0.5))
    assert [deep.step for deep in run.deep] == [1, 2]
    for deep in run.deep:
        assert next(op.name for op in deep.ops if op.outputs[0].requires_grad) == "matmul"
        assert [call.fn for call in deep.losses] == ["cross_entropy"]
    assert not read(run, "model.bad-init").findings


def test_bare_matrices_that_start_at_zero_are_named(tmp_path):
    (found,) = read(_train(tmp_path, *_bare(0.0)), "model.bad-init").findings
    assert found.status == "proven" and found.where


def test_a_module_that_is_stepped_by_hand_is_traced_on_every_deep_step(tmp_path):
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    run = _train(tmp_path, list(model.parameters()), model)
    assert [(deep.step, len(deep.losses)) for deep in run.deep] == [(0, 1), (2, 1)]
