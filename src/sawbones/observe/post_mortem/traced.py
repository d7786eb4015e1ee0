"""Operands that no name holds: the tracer of a deep step saw them when the operator was called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sawbones.schema.crash import Bound, Crash, CrashFrame, Expression, Operand
from sawbones.schema.site import Site

Input = Mapping[str, Any]


def with_traced_operands(record: Crash, failing: Mapping[str, Any]) -> Crash:
    """The record with the shapes, dtypes and ranges of `torch.cat([self.up(x), skip])`: only where
    the operator that failed is the expression that was being evaluated, and every operand that is
    known otherwise agrees.
    """
    place = max((i for i, frame in enumerate(record.frames) if frame.user), default=-1)
    frame = record.frames[place] if place >= 0 else None
    if frame is None or frame.expression is None or not _is_of(frame, failing):
        return record
    expression = frame.expression
    operands = _completed(expression, tuple(failing.get("inputs") or ()), failing)
    if operands is None:
        return record
    filled = replace(frame, expression=replace(expression, operands=operands))
    return replace(record, frames=(*record.frames[:place], filled, *record.frames[place + 1 :]))


def _is_of(frame: CrashFrame, failing: Mapping[str, Any]) -> bool:
    site = failing.get("site")
    if not isinstance(site, Site) or (site.file, site.line) != (frame.site.file, frame.site.line):
        return False
    name = frame.expression.name if frame.expression is not None else ""
    return name.strip("_") == str(failing.get("op", "")).strip("_")


def _completed(
    expression: Expression, inputs: Sequence[Input], failing: Mapping[str, Any]
) -> tuple[Operand, ...] | None:
    """None where tensors and operands cannot be paired off."""
    numbers = failing.get("args") or {}
    left = list(inputs)
    found: list[Operand] = []
    for place, operand in enumerate(expression.operands):
        number = numbers.get(operand.keyword or f"arg{place}")
        if operand.bound is None and isinstance(number, (int, float)):
            operand = replace(operand, bound=Bound("number", "int", value=float(number)))
        elif operand.bound is None:
            count = _num_tensors(operand.text)
            if len(left) < count:
                return None
            taken = [_tensor(value) for value in left[:count]]
            del left[:count]
            listed = _is_list(operand.text)
            several = Bound("sequence", "list", length=count, items=tuple(taken))
            operand = replace(operand, bound=several if listed else taken[0])
        else:
            for known in _tensors(operand.bound):
                if not left or tuple(left[0].get("shape") or ()) != known.shape:
                    return None
                del left[0]
        found.append(operand)
    return tuple(found) if not left else None


def _num_tensors(text: str) -> int:
    """An expression stands for one tensor, a list that is written out for one per element."""
    written = _parsed(text)
    return len(written.elts) if isinstance(written, (ast.List, ast.Tuple)) else 1


def _is_list(text: str) -> bool:
    return isinstance(_parsed(text), (ast.List, ast.Tuple))


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _tensors(bound: Bound) -> Iterator[Bound]:
    if bound.kind == "tensor":
        yield bound
    for item in bound.items if bound.kind == "sequence" else ():
        yield from _tensors(item)


def _tensor(value: Input) -> Bound:
    held: dict[str, Any] = {"traced": True, "nonfinite": int(value.get("nonfinite") or 0)}
    for name, key in (("min", "low"), ("max", "high")):
        if value.get(name) is not None:
            held[key] = float(value[name])
    if value.get("strides") is not None:
        held["strides"] = list(value["strides"])
    grad = bool(value.get("requires_grad"))
    return Bound(
        "tensor",
        "Tensor",
        "torch",
        tuple(int(size) for size in value.get("shape") or ()),
        str(value.get("dtype", "")),
        str(value.get("device", "")),
        grad,
        "" if value.get("is_parameter") or not grad else "graph",
        settings=held,
    )
