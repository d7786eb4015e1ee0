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


def _with_terms(scores):
    """In-batch softmax as of a recommender: a fixed term for each item, and some that do not
    count."""
    masked = torch.zeros(32, 32, dtype=torch.bool).index_fill(1, torch.tensor([3, 9]), True)
    masked.fill_diagonal_(False)
    popularity = torch.linspace(-6, -4, 32)
    return (scores - popularity).masked_fill(masked, float("-inf"))


def test_terms_that_are_not_learned_do_not_hide_the_bound():
    (found,) = _read(lambda rows: _with_terms(_cosines(rows) * 0.1)).findings
    assert found.where[0].code.endswith("_with_terms(_cosines(rows) * 0.1)).findings")


@pytest.mark.parametrize("factor", [1.0, 10.0])
def test_cosines_with_room_and_terms_are_silent(factor):
    reading = _read(lambda rows: _with_terms(_cosines(rows) * factor))
    assert not reading.findings and not reading.could_not_look


def test_a_factor_that_is_learned_bounds_nothing():
    factor = nn.Parameter(torch.tensor(0.1))
    reading = _read(lambda rows: _cosines(rows) * factor)
    assert not reading.findings and reading.could_not_look
