"""Sums into places that an index names: how many of the values are kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import sawbones
from sawbones.evidence import NothingToJudge
from sawbones.faults.model.index_overwrites.check import check
from sawbones.observe.options import Options

DIAGNOSED = Options(deep_steps=(), deep_every=0, journal=True)
REPEATED, DIFFERENT = torch.tensor([0, 1, 1, 2]), torch.tensor([3, 0, 1, 2])


def _run(tmp_path, act):
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with sawbones.watch(out=tmp_path / "run", options=DIAGNOSED) as watching:
        for _ in range(2):
            act(model(torch.randn(4, 3))).sum().backward()
            optimizer.step()
    return watching.close()


def _in_place(index):
    def act(values):
        total = torch.zeros(4, 3)
        total[index] += values
        return total

    return act


def _written_out(values):
    total = torch.zeros(4, 3)
    total[REPEATED] = total[REPEATED] + values
    return total


def _sparse_update(values):
    table, slopes = torch.ones(4, 3), torch.randn(4, 3)
    table[REPEATED] -= 0.1 * slopes[REPEATED]
    return values + table


def _counting(values):
    seen = torch.zeros(3, 3)
    seen[REPEATED[:3], REPEATED[:3]] += 1
    return values.sum() + seen


@pytest.mark.parametrize("act", [_in_place(REPEATED), _written_out])
def test_values_that_are_lost_are_counted_and_proven(tmp_path, act):
    (found,) = check(_run(tmp_path, act))
    assert found.status == "proven" and found.where[0].code.startswith("total[")
    assert found.evidence[0].value == 2  # one of each write


@pytest.mark.parametrize("act", [_in_place(DIFFERENT), _sparse_update])
def test_places_named_once_and_equal_values_are_silent(tmp_path, act):
    assert not list(check(_run(tmp_path, act)))


def test_one_number_for_all_is_suspected(tmp_path):
    (found,) = check(_run(tmp_path, _counting))
    assert found.status == "suspected"


def test_a_run_that_adds_nothing_there_is_not_judged(tmp_path):
    with pytest.raises(NothingToJudge):
        list(check(_run(tmp_path, lambda values: values)))
