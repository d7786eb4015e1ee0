"""Whether training rows are made of values of the rows that are only evaluated, as windows of a
series are, or lags of a table whose rows were dealt out at random.

A row of such a source is in several rows of the model. Where one of them is trained on, it is not
only evaluated, and a change of it says nothing of a leak: the rows that the model is given have to
be changed themselves, where they stand complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    bases: Sequence[Places],
    sources: Iterable[int],
    parts: Iterable[int],
    rows: Sequence[int],
    trained: set[int],
) -> list[Version] | None:
    """The containers that are left without the sources whose values are in rows of another place,
    and without what came before those rows were made; None where no row is made of others.

    `sources` hold all rows, `parts` any of them; `rows` are only evaluated.
    """
    parts, known = list(parts), np.array(sorted(trained), np.int64)
    woven: set[int] = set()
    first: int | None = None
    for source in sources:
        values, owners = _own_values(versions[source].rows.numbers, np.array(rows, np.int64))
        if not len(values):
            continue
        for part in parts:
            if part <= source:
                continue
            inside = versions[part].rows.numbers[np.isin(bases[part], known)]
            met = _met(values, owners, inside)
            if met >= WOVEN * len(np.unique(owners)):
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


def _own_values(numbers: Numbers, rows: Places) -> tuple[Values, Places]:
    """Measured values of some of these rows that no other row has, in order, and whose they are."""
    columns = [c for c in range(numbers.shape[1]) if is_measured(numbers[:, c])][:_COLUMNS]
    picked = rows[:: 1 + len(rows) // _ROWS]
    own = numbers[picked][:, columns].reshape(-1)
    owners = np.repeat(picked, len(columns))
    others = np.delete(numbers[:, columns], rows, axis=0)
    alone = ~np.isin(own, others)
    order = np.argsort(own[alone], kind="stable")
    return own[alone][order], owners[alone][order]


def _met(values: Values, owners: Places, inside: Numbers) -> int:
    """How many owners have a value in these rows."""
    flat = inside.reshape(-1)
    at = np.minimum(np.searchsorted(values, flat), len(values) - 1)
    return len(np.unique(owners[at[values[at] == flat]]))
