"""One row, prepared twice: some rows that are only evaluated become copies of training rows where
they enter the script, which runs again from the same seed. What the model is then given for the
copy in evaluation must be what it is given for the original in training.

Other rows of both parts become copies as well. Where these are not given alike within training,
rows are augmented, or prepared with their neighbours, their fold or their batch, and nothing follows
from a difference. Where they are not within evaluation, these are not the rows that were changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sawbones.schema.sources import CopyPaths, PreparedTwice, Sources

ROUNDING = 1e-4  # of the largest value: one path may compute in float32, the other in float64

Tensors = Sequence[Sequence[float]]


def judge_paths(wanted: CopyPaths, other: Sources) -> PreparedTwice:
    """For evaluation.preprocessing-mismatch."""
    if other.why:  # no time for it, say
        return PreparedTwice("open", other.why)
    if not other.changed:
        return _refused("the rows could not be changed where they enter")
    kept = {(row.phase, row.call, row.place): row.values for row in other.kept}
    count = len(wanted.eval) // 2
    try:
        trained = [kept["train", number, place] for number, place in wanted.train]
        evaluated = [kept["eval", number, place] for number, place in wanted.eval]
    except KeyError:
        return _refused("other rows are drawn after the change")
    first, second = trained[:count], trained[count:]
    held, again = evaluated[:count], evaluated[count:]
    shapes = {tuple(len(t) for t in row) for row in (*trained, *evaluated)}
    if len(shapes) != 1:
        return _refused("rows of training and of evaluation have other shapes")
    if not all(_is_alike(a, b) for a, b in zip(first, second, strict=True)):
        return _refused("equal rows are not given alike in training")
    if not all(_is_alike(a, b) for a, b in zip(held, again, strict=True)):
        return _refused("equal rows are not given alike in evaluation")
    differ = [_differing(a, b) for a, b in zip(first, held, strict=True)]
    told = _withheld(held, first)
    places = [[(t, k) for t, k in row if t not in told] for row in differ]
    moved = sum(bool(row) for row in places)
    if not moved:
        return PreparedTwice("kept", compared=count)
    if moved < count:
        return _refused("some copies are given alike, others are not")
    always = set(places[0]).intersection(*places[1:]) or set(places[0])
    tensor, column = max(always, key=lambda at: abs(first[0][at[0]][at[1]] - held[0][at[0]][at[1]]))
    return PreparedTwice(
        "moved",
        "",
        moved,
        count,
        num_columns=len(set().union(*places)),
        width=sum(len(t) for t in first[0]),
        column=column,
        trained=first[0][tensor][column],
        evaluated=held[0][tensor][column],
    )


def _refused(why: str) -> PreparedTwice:
    return PreparedTwice("refused", why)


def _off(a: Sequence[float], b: Sequence[float]) -> npt.NDArray[np.bool_]:
    left, right = np.array(a), np.array(b)
    size = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0), 1e-12)
    off: npt.NDArray[np.bool_] = ~np.isclose(
        left, right, rtol=0, atol=ROUNDING * size, equal_nan=True
    )
    return off


def _is_alike(a: Tensors, b: Tensors) -> bool:
    return not any(_off(x, y).any() for x, y in zip(a, b, strict=True))


def _differing(a: Tensors, b: Tensors) -> list[tuple[int, int]]:
    """(tensor, column) in which they differ."""
    pairs = enumerate(zip(a, b, strict=True))
    return [(t, int(k)) for t, (x, y) in pairs for k in np.flatnonzero(_off(x, y))]


def _withheld(held: Sequence[Tensors], trained: Sequence[Tensors]) -> set[int]:
    """Tensors that say nothing about the row in evaluation, such as the answer that a decoder is
    given in training only.
    """
    return {
        t
        for t in range(len(held[0]))
        if all(row[t] == held[0][t] for row in held)
        and any(row[t] != trained[0][t] for row in trained)
    }
