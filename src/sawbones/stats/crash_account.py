"""What failed, in words, where no check knows the cause: the operation, its operands, their lines."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Bound, Crash, CrashFrame, Operand, Run
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import deliberate, inner_frame, makers_of, refused_by_torch

MOST_OPERANDS = 6


def account(run: Run) -> list[str]:
    """Empty where the script raised the exception itself, or nothing is known of the line."""
    died = run.ending.crash
    frame = inner_frame(died) if died is not None else None
    expression = frame.expression if frame is not None else None
    if died is None or frame is None or expression is None or deliberate(died):
        return []
    told = [line for o in expression.operands[:MOST_OPERANDS] for line in _told(died, frame, o)]
    if not told:
        return []
    by = "torch refused" if refused_by_torch(died) and _of_tensors(expression.operands) else "in"
    return [f"what failed: {by} {expression.text} (line {frame.site.line})", *told]


def _of_tensors(operands: tuple[Operand, ...]) -> bool:
    return any(o.bound is not None and o.bound.kind == "tensor" for o in operands)


def _told(died: Crash, frame: CrashFrame, operand: Operand) -> Iterator[str]:
    bound = operand.bound
    what = _described(bound) if bound is not None else ""
    if not what:
        return
    made = [a for a in makers_of(died, operand.text) if a.text and a.site.line != frame.site.line]
    origin = f", from line {made[0].site.line}: {made[0].site.code}" if made else ""
    yield f"given: {operand.text} is {what}{origin}"


def _described(bound: Bound) -> str:
    """Empty for what says no more than its own text: numbers that are written out, functions."""
    if bound.kind in ("tensor", "array"):
        low, high = bound.settings.get("low"), bound.settings.get("high")
        values = f", values {low:g} to {high:g}" if low is not None and high is not None else ""
        strides = bound.settings.get("strides")
        laid = f", strides {strides}" if strides and bound.kind == "tensor" else ""
        where = f" on {bound.device}" if bound.device not in ("", "cpu") else ""
        return f"{written(bound.shape)} of {bound.dtype}{where}{values}{laid}"
    if bound.kind == "module":
        return f"a {bound.cls}"
    if bound.kind in ("sequence", "mapping"):
        return f"a {bound.cls} of {bound.length}"
    if bound.kind == "text" and bound.keys:
        return f"the text {bound.keys[0]!r}"
    if bound.kind == "none":
        return "None"
    return f"a {bound.cls}" if bound.kind in ("loader", "optimizer", "table", "object") else ""
