"""What a score is worth where the best of many was chosen by the rows that it is the score of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SPLITS = 100
_MAX_ROWS = 20_000
_SEED = 0


def chosen_by_halves(right: npt.NDArray[np.bool_]) -> float:
    """The share of right answers on one half of the rows, at the time that is the best by the other
    half, over many ways to halve them. `right`: times x rows.

    A choice by rows that are not scored lifts nothing: where all times are equally good this is
    their mean, while the best over all rows lies above it.
    """
    rng = np.random.default_rng(_SEED)
    rows = right.shape[1]
    some = right[:, rng.permutation(rows)[:_MAX_ROWS]] if rows > _MAX_ROWS else right
    half = some.shape[1] // 2
    drawn = np.argsort(rng.random((some.shape[1], _SPLITS)), axis=0)
    first = (drawn < half).astype(np.float32)
    second = ((drawn >= half) & (drawn < 2 * half)).astype(np.float32)
    answers = some.astype(np.float32)
    by_first, by_second = answers @ first / half, answers @ second / half
    splits = np.arange(_SPLITS)
    scores = (
        by_second[by_first.argmax(0), splits],
        by_first[by_second.argmax(0), splits],
    )
    return float(np.mean(scores))
