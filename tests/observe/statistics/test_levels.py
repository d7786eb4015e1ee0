from __future__ import annotations

import numpy as np
import pytest

from sawbones.observe.statistics.levels import BURST, GradientLevels
from sawbones.schema.run import NO_GRADIENT


def level(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def settled(*values: float) -> GradientLevels:
    levels = GradientLevels(len(values))
    for _ in range(20):
        levels.turned_abnormal(level(*values))
    return levels


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 10.5])
def test_a_norm_that_leaves_its_range_is_noticed_on_that_step(value: float) -> None:
    assert settled(1.0, 1.0).turned_abnormal(level(1.0, value))


def test_a_norm_nine_times_its_median_is_usual() -> None:
    assert not settled(1.0, 1.0).turned_abnormal(level(9.0, 1.0))


def test_a_tensor_that_stays_zero_asks_once() -> None:
    levels = settled(1.0, 1.0)
    assert [levels.turned_abnormal(level(1.0, 0.0)) for _ in range(5)] == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_after_one_nan_the_next_steps_are_judged_as_before() -> None:
    levels = settled(1.0)
    assert levels.turned_abnormal(level(float("nan")))
    assert not levels.turned_abnormal(level(1.0))
    assert levels.turned_abnormal(level(11.0))


def test_spikes_on_every_other_step_are_not_examined_for_ever() -> None:
    levels = settled(1.0)
    asked = [levels.turned_abnormal(level(100.0 if i % 2 else 1.0)) for i in range(40)]
    assert BURST <= sum(asked) <= BURST + 2


def test_a_tensor_without_gradient_is_never_abnormal() -> None:
    levels = settled(NO_GRADIENT, 1.0)
    assert not levels.turned_abnormal(level(NO_GRADIENT, 1.0))
    assert not levels.turned_abnormal(level(5.0, 1.0))


def test_what_stays_high_becomes_the_usual() -> None:
    levels = settled(1.0)
    assert [levels.turned_abnormal(level(50.0)) for _ in range(20)] == [True] + 19 * [False]
    assert levels.is_usual([50.0]) and not levels.is_usual([501.0])


def test_what_stays_zero_is_usual_and_keeps_its_range() -> None:
    levels = settled(1.0, 1.0)
    assert not levels.is_usual([1.0, 0.0])
    levels.turned_abnormal(level(1.0, 0.0))
    assert all(levels.is_usual([1.0, 0.0]) for _ in range(40))
    assert not levels.is_usual([0.0, 1.0]) and not levels.is_usual([1.0, 11.0])
