"""The evaluation runs in training mode."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import remove
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, acts_by_mode, statements

LEVEL = 3
MAY_LOOK_BETTER = True
TRIAL = "eval-mode"


def inject(source: Source) -> Iterator[Edits]:
    if not acts_by_mode(source):
        return
    for statement in statements(source, "eval"):
        yield (remove(source, statement),)
