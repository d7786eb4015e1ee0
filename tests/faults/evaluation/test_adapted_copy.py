"""A copy of the model that answers the same rows otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sawbones.faults.deployment.serving_parity.check import check
from sawbones.schema import Ending, Run, Site
from sawbones.schema.populations import Likeness, Populations, ServedPair


def _run(pair: ServedPair) -> Run:
    run = Run("train.py", (), "", {}, Ending("finished"))
    return replace(run, populations=Populations(served=(pair,)))


@pytest.mark.parametrize(
    ("is_training", "scores", "lower", "named"),
    [
        (True, (0.6, 0.95), -0.3, False),
        (True, (0.95, 0.6), 0.3, True),
        (False, (0.6, 0.95), -0.3, True),
    ],
    ids=["adapts", "is worse", "has no reason"],
)
def test_a_copy_in_training_mode_that_answers_better_takes_its_statistics_on_purpose(
    is_training: bool, scores: tuple[float, float], lower: float, named: bool
) -> None:
    copy = Likeness("Sequential", 1.0, 0.0, 1.0, None, "copy")
    apart = ServedPair(0, 1, 100, "classes", 0.4, scores, lower, (), 0, 144, is_training, copy)
    pair = replace(apart, sites=(Site("train.py", 3),))
    assert bool(list(check(_run(pair)))) == named
