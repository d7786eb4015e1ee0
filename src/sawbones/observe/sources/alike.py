"""Whether the rows of training and of evaluation are prepared alike, by where they stand: in one
container, from which the model is given them as they are, or in two that are the same scale and
offset away from a third with all rows.

What differs between the parts is then in the rows themselves, however far apart they lie: a later
stretch of a series, customers of another country.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.containers import LEAST_ROWS, Numbers, Places, hash_rows
from sawbones.observe.sources.placing import RECOGNISED
from sawbones.observe.sources.windows import LEAST_SERIES, Lookup, stretch

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version
    from sawbones.observe.sources.placing import Placing

_ROUNDING = 1e-4  # of the spread: float32 on one way, float64 on the other
_TRIED, _LARGEST = 64, 1 << 21  # containers that are looked into, and values of one


def are_prepared_alike(
    versions: Sequence[Version], placing: Placing, trained: Numbers, evaluated: Numbers
) -> bool:
    """`trained`, `evaluated`: some rows as the model is given them. False where that is not seen."""
    if min(len(trained), len(evaluated)) < LEAST_ROWS:
        return False
    holders: list[list[int]] = [[], []]
    for v in range(len(versions) - 1, -1, -1)[:_TRIED]:
        for side, rows in zip(holders, (trained, evaluated), strict=True):
            if placing.space[v] >= 0 and _holds(versions[v], rows):
                side.append(v)
    # What was written to in place may hold a part that is prepared and one that is not.
    if any(not versions[v].is_rewritten for v in set(holders[0]) & set(holders[1])):
        return True
    return any(_are_same_way(versions, placing, u, v) for u in holders[0] for v in holders[1])


def _holds(version: Version, rows: Numbers) -> bool:
    """The rows as they are, or as stretches of a series."""
    numbers = version.rows.numbers
    if version.rows.is_text or numbers.size > _LARGEST:
        return False
    if numbers.shape[1] == rows.shape[1]:
        return bool(np.mean(np.isin(hash_rows(rows), version.rows.hashes)) >= RECOGNISED)
    if rows.shape[1] < 2 or rows.shape[1] % numbers.shape[1] or version.count < LEAST_SERIES:
        return False
    return float(np.mean(Lookup(numbers).ends(rows) >= 0)) >= RECOGNISED


def _are_same_way(versions: Sequence[Version], placing: Placing, u: int, v: int) -> bool:
    """Whether one scale and offset makes both of a container that holds all rows."""
    for w, whole in enumerate(versions[: min(u, v)]):
        if placing.space[w] < 0 or not placing.is_whole(w) or whole.rows.is_text:
            continue
        ways = []
        for x in (u, v):
            made = versions[x].rows.numbers
            is_near = placing.space[x] == placing.space[w]
            places = placing.base[x] if is_near else stretch(whole.rows.numbers, made)
            ways.append(None if places is None else _way(whole.rows.numbers, made, places))
        first, second = ways
        if first is None or second is None:
            continue
        if np.allclose(first, second, rtol=_ROUNDING, atol=_ROUNDING):
            return True
    return False


def _way(whole: Numbers, made: Numbers, places: Places) -> npt.NDArray[np.float64] | None:
    """Scale and offset of every column, in spreads of what it is made of; None where it is made in
    another way.
    """
    if whole.shape[1] != made.shape[1] or not 0 <= places.min() <= places.max() < len(whole):
        return None
    wide, spread = made.astype(np.float64), whole.std(0, dtype=np.float64)
    given = (whole[places] - whole.mean(0, dtype=np.float64)) / np.where(spread > 0, spread, 1)
    centred, target = given - given.mean(0), wide - wide.mean(0)
    power = (centred**2).sum(0)
    slope = (centred * target).sum(0) / np.where(power > 0, power, 1)
    off = np.abs(target - slope * centred).max()
    if not off <= _ROUNDING * max(float(np.abs(wide).max()), 1):
        return None
    return np.stack([slope, wide.mean(0) - slope * given.mean(0)])
