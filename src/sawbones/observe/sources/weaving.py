"""Whether training rows are made of values of the rows that are only evaluated, as windows of a
series are, or lags of a table whose rows were dealt out at random.

A row of such a source is in several rows of the model. Where one of them is trained on, it is not
only evaluated, and a change of it says nothing of a leak: the rows that the model is given have to
be changed themselves, where they stand complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.containers import Numbers, Places
from sawbones.observe.sources.placing import is_measured

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version

WOVEN = 0.25  # of the evaluated rows, whose values are in training rows: a gap filled is not many
_ROWS, _COLUMNS = 128, 4  # looked at

Values = npt.NDArray[np.float32]


def unwoven(
    versions: Sequence[Version],
    sources: Iterable[int],
    parts: Mapping[int, Places],
    rows: Sequence[int],
    trained: set[int],
) -> list[Version] | None:
    """The containers that are left without the sources whose values are in rows of another place,
    and without what came before those rows were made; None where no row is made of others.

    `sources` hold all rows, `parts` those whose numbers stand beside them; `rows` are only
    evaluated.
    """
    known = np.array(sorted(trained), np.int64)
    woven: set[int] = set()
    first: int | None = None
    filled = [source for source in sources if not versions[source].is_remade]
    for source in filled:
        picked = np.array(rows[:: 1 + len(rows) // _ROWS], np.int64)
        values, owners = _own_values(versions[source].rows.numbers, picked, rows)
        if len(values) < WOVEN * len(picked):
            continue
        for part, places in parts.items():
            inside = versions[part].rows.numbers[np.isin(places, known)]
            is_later = part > source
            if is_later and _met(values, owners, inside) >= WOVEN * len(picked):
                woven.add(source)
                first = part if first is None else min(first, part)
                break
    if first is None:
        return None
    size = versions[first].count
    return [
        version
        for number, version in enumerate(versions)
        if number not in woven and (number >= first or version.count == size)
    ]


def answers_met(
    versions: Sequence[Version],
    labels: Sequence[tuple[int, int]],
    parts: Mapping[int, Places],
    rows: Sequence[int],
    trained: set[int],
) -> tuple[int, int]:
    """(rows that are only evaluated and asked for a value that training rows are given while they
    themselves are not, rows that were looked at), at the container that shows the most.
    """
    known = np.array(sorted(trained), np.int64)
    picked = np.array(rows[:: 1 + len(rows) // _ROWS], np.int64)
    most = 0
    marked = {v for v, _ in labels}
    for v, column in labels:
        answers = versions[v].rows.numbers[:, column : column + 1]
        values, owners = _own_values(answers, picked, rows)
        if not len(values):
            continue
        for part, places in parts.items():
            numbers = versions[part].rows.numbers
            if part in marked and numbers.shape[1] == 1:
                continue
            held = np.isin(places, picked)
            own = (numbers[held] == answers[places[held]]).any(1)
            is_new = ~np.isin(owners, places[held][own])
            if is_new.any():
                inside = numbers[np.isin(places, known)]
                most = max(most, _met(values[is_new], owners[is_new], inside))
    return most, len(picked)


def _own_values(numbers: Numbers, picked: Places, rows: Sequence[int]) -> tuple[Values, Places]:
    """Measured values of the picked rows that none but `rows` have, in order, and whose they
    are.
    """
    columns = [c for c in range(numbers.shape[1]) if is_measured(numbers[:, c])][:_COLUMNS]
    own = numbers[picked][:, columns].reshape(-1)
    owners = np.repeat(picked, len(columns))
    alone = ~np.isin(own, np.delete(numbers, rows, axis=0))
    order = np.argsort(own[alone], kind="stable")
    return own[alone][order], owners[alone][order]


def _met(values: Values, owners: Places, inside: Numbers) -> int:
    """How many owners have a value in these rows."""
    flat = inside.reshape(-1)
    at = np.minimum(np.searchsorted(values, flat), len(values) - 1)
    return len(np.unique(owners[at[values[at] == flat]]))
