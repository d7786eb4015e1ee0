"""Clear the gradients once per optimizer step: before backward where it stands beside the step, else
behind the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import Edit, after, before
from sawbones.fixing.recipes import Case, Change, Use


def fix(case: Case) -> Iterator[Change]:
    uses = [use for index in _uncleared(case) if (use := case.optimizer(index)) is not None]
    if not uses:
        return
    calls = " ".join(f"{use.text}.zero_grad()" for use in uses)
    summary = f"Clear the gradients once per step: {calls}."
    early = [_before_backward(case, use) for use in uses]
    late = [after(use.source, use.statement, f"{use.text}.zero_grad()") for use in uses]
    yield Change(summary, tuple(e or behind for e, behind in zip(early, late, strict=True)))
    yield Change(summary, tuple(late))


def _uncleared(case: Case) -> list[int]:
    """Optimizers that step on gradients which were there at the step before."""
    steps = [e for e in case.run.of_kind("step") if not e.data.get("skipped")]
    found = [int(e.data["optimizer"]) for e in steps if e.data.get("uncleared")]
    return list(dict.fromkeys(found))


def _before_backward(case: Case, use: Use) -> Edit | None:
    place = case.statement(case.site)
    if place is None or place[0] is not use.source or not use.reaches(place[1]):
        return None
    block = use.source.block(use.statement)
    beside = place[1] in block and block.index(place[1]) < block.index(use.statement)
    return before(use.source, place[1], f"{use.text}.zero_grad()") if beside else None
