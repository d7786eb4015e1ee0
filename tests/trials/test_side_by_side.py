"""When a run under a remedy ends lower: at its level, and step by step."""

from __future__ import annotations

import numpy as np
import pytest

from sawbones.schema import STEP_COLUMNS, Ending, Run
from sawbones.trials.side_by_side import _chance, compare

FALLING = np.linspace(2.0, 1.0, 40)


def _run(losses: np.ndarray) -> Run:
    steps = {name: np.zeros(len(losses)) for name in STEP_COLUMNS}
    return Run("t.py", (), "", {}, Ending("finished"), steps={**steps, "loss": losses})


@pytest.mark.parametrize(
    ("late", "lower"),
    [
        ([0.1] * 8, True),
        ([0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 3.0, 4.0], False),  # its median alone is lower
        ([np.nan] * 8, False),
        ([1.1] * 8, False),
    ],
)
def test_a_remedy_gains_where_its_steps_agree(late: list[float], lower: bool) -> None:
    other = FALLING.copy()
    other[-8:] = late
    assert compare(_run(FALLING), _run(other)).lower(0.15) is lower


def test_equal_steps_say_nothing() -> None:
    assert _chance(np.zeros(20)) == 1.0


@pytest.mark.parametrize(("end", "better"), [(4.4, False), (1.2, True)])
def test_a_remedy_that_only_climbs_more_slowly_is_none(end: float, better: bool) -> None:
    climbing = np.geomspace(2.2, 24_000.0, 300)
    assert compare(_run(climbing), _run(np.linspace(2.2, end, 300))).is_better is better
