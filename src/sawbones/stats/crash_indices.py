"""Indices that lie outside of the axis that they point into, read off the operator's operands."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema import Bound, Operand
from sawbones.stats.crashes import Given, Refusal

# x.gather(axis, index, ...): what is indexed, the axis, then the index.
_BY_AXIS = (
    "gather",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
    "index_select",
    "take_along_dim",
)


@dataclass(frozen=True)
class Outside:
    """`value` is the largest index, or the smallest where that is the one below the axis."""

    index: Given
    table: Given
    axis: int
    size: int
    value: int
    low: int
    high: int


def outside(call: Refusal) -> Outside | None:
    """None where every index is within its axis, or nothing is known of their values."""
    name = call.name.strip("_")
    operands = call.expression.operands
    if not operands or operands[0].bound is None or operands[0].bound.kind != "tensor":
        return None
    table = Given(operands[0].text, operands[0].bound)
    if name in _BY_AXIS:
        axis = _axis(operands)
        index = next((o for o in operands[1:] if _is_index(o.bound)), None)
        return _compared(index, table, axis) if index is not None and axis is not None else None
    if call.expression.kind == "subscript":
        for axis, operand in enumerate(operands[1:]):
            found = _compared(operand, table, axis) if _is_index(operand.bound) else None
            if found is not None:
                return found
            if operand.text.strip() in ("None", "...") or _is_mask(operand.bound):
                return None  # axes no longer count one by one
    return None


def _axis(operands: tuple[Operand, ...]) -> int | None:
    named = [o for o in operands if o.keyword == "dim"]
    second = [o for o in operands[1:2] if not o.keyword]
    bound = next((o.bound for o in (*named, *second)), None)
    return int(bound.value) if bound is not None and bound.value is not None else None


def _is_index(bound: Bound | None) -> bool:
    return bound is not None and bound.kind == "tensor" and bound.dtype in ("int64", "int32")


def _is_mask(bound: Bound | None) -> bool:
    return bound is not None and bound.dtype in ("bool", "uint8")


def _compared(index: Operand, table: Given, axis: int) -> Outside | None:
    bound, shape = index.bound, table.bound.shape
    if bound is None or not -len(shape) <= axis < len(shape):
        return None
    low, high = bound.settings.get("low"), bound.settings.get("high")
    if low is None or high is None:
        return None
    size = shape[axis]
    given = Given(index.text, bound)
    if high >= size:
        return Outside(given, table, axis, size, int(high), int(low), int(high))
    if low < 0:
        return Outside(given, table, axis, size, int(low), int(low), int(high))
    return None
