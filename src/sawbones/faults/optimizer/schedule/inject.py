"""A schedule counted in epochs steps with every batch."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, moved_behind, optimizer_steps, scheduler_steps

LEVEL = 3
TRIAL = "constant-lr"


def inject(source: Source) -> Iterator[Edits]:
    stepped, scheduled = optimizer_steps(source), scheduler_steps(source)
    if len(stepped) == len(scheduled) == 1:
        yield moved_behind(source, scheduled[0], stepped[0])
