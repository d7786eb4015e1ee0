"""What an allocation that failed was for, and how much each way out of it would save."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from sawbones.schema import Bound, Run
from sawbones.stats.crashes import crash, inner_frame
from sawbones.stats.failures import failure

_BYTES = re.compile(r"allocate ([\d.]+) (bytes|KiB|MiB|GiB)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_WIDTHS = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}
_PRODUCTS = ("matmul", "bmm", "mm", "baddbmm", "__matmul__")
_SMALLEST = 4  # elements of an axis that is worth being cut


@dataclass(frozen=True)
class Way:
    text: str
    num_bytes: int


def asked_bytes(message: str) -> int:
    """0 where the allocator does not say how much."""
    found = _BYTES.search(message)
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0


def in_words(num_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if num_bytes < 1024:
            return f"{num_bytes:.4g} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.4g} GiB"


def operands(run: Run) -> list[tuple[str, Bound]]:
    """The tensors of the operation that asked for the memory."""
    expression = inner_frame(crash(run)).expression if run.ending.crash is not None else None
    found = [
        (o.text, o.bound)
        for o in (expression.operands if expression is not None else ())
        if o.bound is not None and o.bound.kind == "tensor"
    ]
    traced = failure(run)
    if found or traced is None:
        return found
    return [
        (
            f"input {n}",
            Bound("tensor", shape=tuple(v.get("shape") or ()), dtype=str(v.get("dtype"))),
        )
        for n, v in enumerate(traced.inputs[:3], 1)
    ]


def result_shape(run: Run, given: list[tuple[str, Bound]], asked: int) -> tuple[int, ...]:
    """Of a matrix product that takes just as much; () where it is not known."""
    expression = inner_frame(crash(run)).expression if run.ending.crash is not None else None
    name = expression.name if expression is not None else ""
    traced = failure(run)
    if name not in _PRODUCTS and (traced is None or traced.op.rpartition(".")[2] not in _PRODUCTS):
        return ()
    shapes = [bound.shape for _, bound in given if len(bound.shape) > 1]
    if not shapes:
        return ()
    left = shapes[0]
    # the other side is often turned over on the line itself: its last axis but one is as long
    columns = shapes[1][-1] if len(shapes) > 1 else left[-2]
    shape = (*left[:-1], columns)
    width = _WIDTHS.get(given[0][1].dtype, 0)
    return shape if prod(shape) * width == asked else ()


def ways_out(asked: int, shape: tuple[int, ...], dtype: str) -> Iterator[Way]:
    """Each change of one size, with what the same allocation would then take."""
    if len(shape) > 2 and shape[0] > 1:
        text = f"batch {shape[0]} -> 1, with {shape[0]} accumulated steps"
        yield Way(text, asked // shape[0])
    if len(shape) > 1 and shape[-1] == shape[-2] and shape[-1] >= _SMALLEST:
        half = shape[-1] // 2
        yield Way(f"length {shape[-1]} -> {half} (both axes of the scores)", asked // 4)
        yield Way("scaled_dot_product_attention, which does not keep the scores", 0)
    elif shape and shape[0] >= _SMALLEST and len(shape) <= 2:
        yield Way(f"first axis {shape[0]} -> {shape[0] // 2}", asked // 2)
    if _WIDTHS.get(dtype, 0) == _WIDTHS["float32"]:
        yield Way("half precision (autocast with bfloat16)", asked // 2)


def held(run: Run, most: int = 3) -> list[tuple[str, int]]:
    """What the forward pass keeps, by module, largest first; then the weights."""
    rows = []
    for row in run.ending.modules:
        outputs = row.get("outputs") or ()
        shape = tuple(outputs[0][1]) if outputs else ()
        if shape and row.get("path"):
            name = f"{row.get('class')} {row.get('path')}"
            rows.append((name, prod(shape) * _WIDTHS["float32"]))
    rows.sort(key=lambda pair: -pair[1])
    weights = sum(prod(t.shape) for t in run.tensors) * _WIDTHS["float32"]
    return [*rows[:most], *([("weights", weights)] if weights else [])]
