"""One row of the training data is three thousand times too large, where that does harm.

A clipped gradient, a normalised hidden layer and a loss that grows no faster than its input each take
the row's size away again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import before
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, calls, clips, normalises, trained_rows

LEVEL = 4
TRIAL = "clip=1"


def inject(source: Source) -> Iterator[Edits]:
    if clips(source) or normalises(source) or not calls(source, "MSELoss", "mse_loss"):
        return
    for statement, name, rows in trained_rows(source):
        yield (before(source, statement, f"{name}[{rows}[len({rows}) // 3]] *= 3000"),)
