"""Divide the gradients by the scale before they are clipped."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import after, before
from sawbones.fixing.moves import move
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    scaler, optimizer = case.scaler(), case.optimizer()
    place = case.statement(case.site)
    if scaler is None or optimizer is None or place is None:
        return
    source, clip = place
    late = case.use("unscale", "unscale_")
    if late is not None and late.source is source and late.statement in source.block(clip):
        yield Change(
            f"Unscale before clipping: {source.text_of(late.statement)} moves up.",
            move(source, late.statement, clip, behind=False),
        )
        return
    line = f"{scaler.text}.unscale_({optimizer.text})"
    if scaler.source is not source or not (scaler.reaches(clip) and optimizer.reaches(clip)):
        return
    clips = case.run.of_kind("clip")
    put = before if clips else after  # without a clip of torch's the place is that of backward
    yield Change(f"Unscale before clipping: {line}.", (put(source, clip, line),))
