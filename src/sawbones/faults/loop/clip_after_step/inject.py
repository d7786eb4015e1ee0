"""The gradients are clipped when the step is done."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.source import Source
from sawbones.practise.places import Edits, moved_behind, optimizer_steps, statements

LEVEL = 3
TRIAL = "clip=1"


def inject(source: Source) -> Iterator[Edits]:
    clipped, stepped = statements(source, "clip_grad_norm_"), optimizer_steps(source)
    if len(clipped) == len(stepped) == 1:
        yield moved_behind(source, clipped[0], stepped[0])
