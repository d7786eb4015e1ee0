"""Cosine similarities that are multiplied by the temperature, next to those that are divided."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults import read
from sawbones.schema import Ending, Run

X = torch.randn(32, 10, generator=torch.Generator().manual_seed(1))
Y = torch.arange(32)


def _read(scores):
    torch.manual_seed(0)
    model = nn.Linear(10, 16)
    deep = observe(model, lambda: F.cross_entropy(scores(model(X)), Y))
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,))
    return read(run, "loss.flat-scores")


def _cosines(rows):
    unit = rows / rows.norm(dim=-1, keepdim=True)
    return unit @ F.normalize(rows.detach() + 0.1, dim=-1).T


def test_cosines_times_a_small_temperature_are_named():
    (found,) = _read(lambda rows: _cosines(rows) * 0.1).findings
    assert found.status == "likely"  # the report says less of a check in preview


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_cosines_with_room_are_silent(factor):
    reading = _read(lambda rows: _cosines(rows) * factor)
    assert not reading.findings and not reading.could_not_look


def test_scores_without_a_bound_are_not_judged():
    reading = _read(lambda rows: 0.01 * rows @ torch.randn(16, 32))
    assert not reading.findings and reading.could_not_look
