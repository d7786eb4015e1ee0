"""Padding that hardly a row has is still found where the targets that do not count stand, beside
the shift of a language model.
"""

from __future__ import annotations

import numpy as np

from sawbones.observe.signals.samples import read_rows

PAD, LIMIT = 0, 12


def shifted(ids: np.ndarray) -> np.ndarray:
    """Targets as a language model has them: the next id, none after the last one, none at
    padding.
    """
    following = np.concatenate([ids[:, 1:], np.zeros_like(ids[:, :1])], axis=1)
    return np.where(following == PAD, -100, following)


def test_few_short_rows_have_their_lengths() -> None:
    rng = np.random.default_rng(0)
    batches = []
    for _ in range(20):
        ids = rng.integers(3, 9, (16, LIMIT))
        for row, length in enumerate(rng.integers(7, 10, 1)):
            ids[row, length:] = PAD
        batches.append(ids)
    found = read_rows(
        batches, {i: (shifted(b), -100) for i, b in enumerate(batches)}, list(range(20))
    )
    assert (found.pad_id, found.pad_side) == (PAD, "right")
    assert found.targets is not None and found.targets.rows_below == 20


def test_whole_rows_have_no_padding() -> None:
    rng = np.random.default_rng(1)
    batches = [rng.integers(3, 9, (16, LIMIT)) for _ in range(20)]
    found = read_rows(
        batches, {i: (shifted(b), -100) for i, b in enumerate(batches)}, list(range(20))
    )
    assert found.pad_id is None
    assert set(found.lengths) == {LIMIT}
