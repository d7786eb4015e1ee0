"""Where a batch of one row has lost its axis: squeeze() without an axis takes that one as well."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from sawbones.schema import Assignment, CrashFrame, Run, Site
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import Given, Refusal, makers

_JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")


@dataclass(frozen=True)
class LostAxis:
    """A value without any axis, where one with an axis is needed."""

    what: str  # refuses it
    expected: str
    got: str
    sites: tuple[Site, ...]  # that take the axis away


def lost_axis(run: Run, call: Refusal) -> LostAxis | None:
    return _in_list(run, call) if call.name in _JOINING else _beside(run, call)


def _beside(run: Run, call: Refusal) -> LostAxis | None:
    """One side has no axis and the other one of a single row."""
    sides = call.tensors[:2]
    shapes = [g.bound.shape for g in sides]
    if () not in shapes or (1,) not in shapes:
        return None
    side, other = sides[shapes.index(())], sides[shapes.index((1,))]
    found = _lines_of(run, call.frame, side)
    what = f"{call.layer} is given {side.name} without an axis beside {other.name} of 1 value"
    return LostAxis(what, "1 value", "a single number", tuple(found)) if found else None


def _in_list(run: Run, call: Refusal) -> LostAxis | None:
    """Values that are joined, of which one has no axis at all."""
    operands = [o for o in call.expression.operands if o.bound is not None and o.bound.items]
    rows = operands[0].bound if operands else None
    if rows is None or any(item.kind != "tensor" for item in rows.items):
        return None
    shapes = [item.shape for item in rows.items]
    if all(shapes) or not any(shapes):
        return None
    added = [
        a
        for a in call.frame.assignments
        if a.how == "append" and a.name in {o.text for o in operands}
    ]
    lines = [*added, *(m for a in added for name in a.reads for m in makers(run, name))]
    found = _squeezed_at(call.frame, lines)
    if not found:
        return None
    number = shapes.index(()) + 1
    what = f"{call.name} joins {len(shapes)} values, and number {number} has no axis left"
    longest = written(max(shapes, key=len))
    expected = f"an axis in each of them, as in {longest}"
    return LostAxis(what, expected, f"a single number in place {number}", tuple(found))


def _lines_of(run: Run, frame: CrashFrame, side: Given) -> list[Site]:
    called = _called_in(side.name)
    inside = [
        frame.values[name].lines["squeeze"]
        for name in called
        if name in frame.values and "squeeze" in frame.values[name].lines
    ]
    here = [frame.site] if "squeeze" in called else []
    return [*inside, *here, *_squeezed_at(frame, makers(run, side.name))]


def _squeezed_at(frame: CrashFrame, lines: Sequence[Assignment]) -> list[Site]:
    """The first of these lines that squeezes, or calls a module whose forward pass does."""
    for made in lines:
        modules = [frame.values[name] for name in made.calls if name in frame.values]
        inside = [m.lines["squeeze"] for m in modules if "squeeze" in m.lines]
        if "squeeze" in made.calls or inside:
            return [*inside, made.site]
    return []


def _called_in(text: str) -> list[str]:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return []
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [f.id for f in functions if isinstance(f, ast.Name)]
    return names + [f.attr for f in functions if isinstance(f, ast.Attribute)]
