"""Windows that a script has cut and then made something else of (spectra, statistics, scaled rows),
before they were given to the model: whether evaluated ones overlap trained ones on both sides.

Row by row it is known which row of the model was made of which window: containers of one script
that hold the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sawbones.observe.sources.containers import Numbers
from sawbones.observe.sources.placing import RECOGNISED
from sawbones.schema.samples import LaterWindows

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version
    from sawbones.observe.sources.placing import Placing

_SHAPES = 4  # of rows that are looked at, the earliest first
_LEAST_WIDTH = 12  # values of a window: fewer are columns

Seen = Mapping[str, Mapping[int, float | None]]
Row = tuple[int, int]  # space, number


def windows_before(
    versions: Sequence[Version], placing: Placing, seen: Seen, width: int
) -> LaterWindows | None:
    """None where no container of windows holds the rows of both phases."""
    from sawbones.observe.signals.later_windows import dealt_windows  # torch: by now it is there

    trained, evaluated = _rows_of(versions, placing, seen, width)
    if not trained or not evaluated:
        return None
    spaces = {space for space, _ in (*trained, *evaluated)}
    fits = [
        v
        for v, x in enumerate(versions)
        if placing.space[v] in spaces and not x.rows.is_text and x.rows.numbers.shape[1] > 1
    ]
    shapes = dict.fromkeys(versions[v].rows.shape for v in fits)
    wide = [s for s in shapes if s and np.prod(s) >= _LEAST_WIDTH and len(s) <= 2]
    for shape in wide[:_SHAPES]:
        held = [v for v in fits if versions[v].rows.shape == shape]
        ours, theirs = (_collected(versions, placing, held, r) for r in (trained, evaluated))
        if len(ours) < RECOGNISED * len(trained) or len(theirs) < RECOGNISED * len(evaluated):
            continue
        if np.array_equal(theirs, np.round(theirs)):
            continue  # letters, boards, counts: what comes about again and again
        found = dealt_windows(ours.reshape(-1, *shape), theirs.reshape(-1, *shape))
        if found is not None and found.between:
            return found
    return None


def _rows_of(
    versions: Sequence[Version], placing: Placing, seen: Seen, width: int
) -> tuple[list[Row], list[Row]]:
    """(trained, evaluated and not trained), each in the order in which the model met them."""
    place: dict[int, Row] = {}
    for v, version in enumerate(versions):
        if version.rows.numbers.shape[1] == width and placing.space[v] >= 0:
            base = placing.base[v].tolist()
            for h, number in zip(version.rows.hashes.tolist(), base, strict=True):
                if number >= 0:
                    place.setdefault(h, (placing.space[v], number))
    trained = [place[h] for h in seen["train"] if h in place]
    known = set(trained)
    held = [place[h] for h in seen["eval"] if h in place and place[h] not in known]
    met = len(trained), len([h for h in seen["eval"] if h in place])
    if any(n < RECOGNISED * len(seen[p]) for n, p in zip(met, ("train", "eval"), strict=True)):
        return [], []
    return trained, held


def _collected(
    versions: Sequence[Version], placing: Placing, held: Sequence[int], rows: Sequence[Row]
) -> Numbers:
    """The values of these rows, where a container holds them first."""
    at: dict[Row, tuple[int, int]] = {}
    for v in held:
        for k, number in enumerate(placing.base[v].tolist()):
            at.setdefault((placing.space[v], number), (v, k))
    found = [at[row] for row in rows if row in at]
    width = versions[held[0]].rows.numbers.shape[1]
    values = np.empty((len(found), width), np.float32)
    for n, (v, k) in enumerate(found):
        values[n] = versions[v].rows.numbers[k]
    return values
