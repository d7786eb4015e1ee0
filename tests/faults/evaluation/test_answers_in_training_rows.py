"""Rows of a series that are asked for what training rows are given."""

from __future__ import annotations

import pytest

from sawbones.faults.evaluation.leak_temporal.check import check
from sawbones.schema import Ending, Run
from sawbones.schema.sources import SourceChange


@pytest.mark.parametrize(("met", "told"), [(60, 1), (3, 0)])
def test_most_answers_among_training_inputs_are_the_future_and_a_few_are_the_cut(
    met: int, told: int
) -> None:
    change = SourceChange(answers_met=(met, 64))
    run = Run("t.py", (), "", {}, Ending("finished"), source_change=change)
    found = list(check(run))
    assert [f.status for f in found] == ["likely"] * told
