"""Pictures with their channels in another order, however they were scaled."""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.observe.populations.channels import swapped_channels
from sawbones.observe.populations.judged import Judged

RNG = np.random.default_rng(2)
SHAPE = (3, 6, 6)
COLOURS = np.array([[0.9, 0.8, 0.1], [0.2, 0.1, 0.2], [0.5, 0.6, 0.9]])


def _pictures(num: int, number: int, order: tuple[int, ...] = (0, 1, 2), grey: bool = False) -> Any:
    colours = COLOURS.mean(1, keepdims=True).repeat(3, 1) if grey else COLOURS
    pixels = colours[RNG.integers(0, 3, (num, 6, 6))] + RNG.normal(0, 0.05, (num, 6, 6, 3))
    moved = pixels[..., order].transpose(0, 3, 1, 2) * [[[2.0]], [[3.0]], [[5.0]]] - 1
    rows = moved.reshape(num, -1).astype(np.float32)
    answers, hashes = np.zeros((num, 2), np.float32), tuple(range(num))
    return Judged(number, (), (0, 0), None, False, rows, hashes, answers, None, "", None, 0.0)


def test_channels_in_reverse_are_named_with_the_order_that_puts_them_back() -> None:
    told = swapped_channels(_pictures(300, 0), _pictures(200, 1, (2, 1, 0)), SHAPE)
    assert told is not None
    assert told.order == (2, 1, 0)


def test_pictures_in_the_same_order_and_grey_ones_are_left_alone() -> None:
    assert swapped_channels(_pictures(300, 0), _pictures(200, 1), SHAPE) is None
    grey = [_pictures(200, i, order, True) for i, order in enumerate([(0, 1, 2), (2, 1, 0)])]
    assert swapped_channels(*grey, SHAPE) is None


def test_pictures_of_another_kind_fit_in_no_order() -> None:
    other = _pictures(200, 1)
    other.rows[:] = RNG.normal(size=other.rows.shape)
    assert swapped_channels(_pictures(300, 0), other, SHAPE) is None
