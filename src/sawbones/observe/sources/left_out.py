"""A part that was split off and is trained on all the same: the script holds the trained rows without
the evaluated ones as a container of their own, or the numbers of both parts, and trains on all of
them.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sawbones.observe.sources.containers import LEAST_ROWS
from sawbones.observe.sources.placing import is_index
from sawbones.schema import Site
from sawbones.schema.sources import LeftOut

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version


def left_out(versions: Sequence[Version], trained: set[int], again: set[int]) -> LeftOut | None:
    """`again`: hashes of evaluated rows that were trained on before. None where nobody held the
    others together.
    """
    others = trained - again
    if min(len(again), len(others)) < LEAST_ROWS:
        return None
    found = _rows_of(versions, others) or _numbers_of(versions, len(others), len(again))
    if found is None:
        return None
    code = linecache.getline(found.code.co_filename, found.line).strip()[:200]
    site = Site(found.file, found.line, found.code.co_name, code)
    return LeftOut(len(trained), len(again), found.count, site)


def _rows_of(versions: Sequence[Version], others: set[int]) -> Version | None:
    """The container that holds these rows and no other."""
    fits = (v for v in versions if v.count >= len(others))
    return next((v for v in fits if set(v.rows.hashes.tolist()) == others), None)


def _numbers_of(versions: Sequence[Version], held: int, again: int) -> Version | None:
    """The row numbers of the part that is not evaluated, where those of the other part are held as
    well and both together are all rows from the first to the last.
    """
    lists = [v for v in versions if v.count in (held, again) and is_index(v)]
    for ours in (v for v in lists if v.count == held):
        for theirs in (v for v in lists if v.count == again):
            both = np.concatenate([ours.rows.numbers[:, 0], theirs.rows.numbers[:, 0]])
            if np.array_equal(np.sort(both), np.arange(held + again)):
                return ours
    return None
