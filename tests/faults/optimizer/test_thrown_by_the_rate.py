"""A rate that is far too high, in a run whose rate falls to nothing: at the end most batches cost
nothing, as the weights are enormous, and a part of them costs thousands.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.symptoms.drawn import drawn, falling

from sawbones.faults.optimizer.lr_too_high.check import check
from sawbones.schema import Run
from sawbones.stats.divergence import end_cost

STEPS = 120
LARGE = np.concatenate([[10.0, 5.0, 3.0], np.full(STEPS - 3, 0.1)])  # of weights of 10


def _mostly_nothing() -> np.ndarray:
    drawn_rows = np.random.default_rng(3)
    heights = 8000 * drawn_rows.random(STEPS) * np.linspace(1.0, 0.3, STEPS)
    losses = np.where(drawn_rows.random(STEPS) < 0.3, heights, 0.0)
    losses[0], losses[-5:] = 1.05, 0.0
    return losses


def _run(losses: np.ndarray) -> Run:
    return drawn(losses, columns={"update_norm": LARGE, "lr": np.linspace(30.0, 0.0, STEPS)})


def test_a_part_of_the_batches_that_costs_thousands_is_seen() -> None:
    (found,) = check(_run(_mostly_nothing()))
    assert found.status == "likely"
    assert found.title.startswith("Learning rate 30 is too high: the loss rises from 1.05 to ")
    assert found.title.endswith(" on average")


def test_one_of_them_is_a_bad_batch() -> None:
    losses = falling(STEPS, start=1.05, end=0.0)
    losses[-8] = 5000.0
    assert list(check(_run(losses))) == []


@pytest.mark.parametrize(("losses", "cost"), [(_mostly_nothing(), 300.0), (falling(), 0.2)])
def test_a_run_costs_at_its_end_what_its_batches_cost(losses: np.ndarray, cost: float) -> None:
    assert end_cost(losses) == pytest.approx(cost, rel=0.4)
