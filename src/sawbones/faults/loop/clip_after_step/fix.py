"""Clip between backward and step: the clipping statement moves in front of the step."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.moves import move
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    optimizer = case.optimizer()
    clips = [e.site for e in case.run.of_kind("clip")][:1]
    place = case.statement(clips[0] if clips else case.site)
    if optimizer is None or place is None or place[0] is not optimizer.source:
        return
    source, clip = place
    if source.function_of(clip) is not source.function_of(optimizer.call):
        return
    yield Change(
        "Clip between backward() and step(), where there are gradients that are still to be used.",
        move(source, clip, optimizer.statement, behind=False),
    )
