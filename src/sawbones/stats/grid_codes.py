"""Codes for the rows and columns of a grid: along which of its axes each table of codes was laid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.schema import DeepStep, Op, Value
from sawbones.stats.weighted_sums import rearranged
from sawbones.trace.graph import StepGraph, data_values

ADDING = ("add", "add_", "cat")
_KEEPING = frozenset({"dropout", "contiguous", "to", "float", "half", "clone", "type_as"})
_SPREADING = frozenset({"expand", "expand_as", "broadcast_to", "repeat"})
_ARRANGING = frozenset({"transpose", "mT", "permute", "unsqueeze"})
_MERGING = frozenset({"flatten", "view", "reshape"})
_FEATURES = -1  # stands for the dimension that holds the numbers of a code
_NEW: frozenset[int] = frozenset()
Told = tuple[frozenset[int], ...]  # for every dimension: the tables whose rows lie along it


@dataclass(frozen=True)
class TwiceTold:
    """Two tables lie along one axis of a grid and none along the other, which is as long; then the
    grid becomes a single row of positions.
    """

    laid: Op  # puts the second table beside the first
    shape: tuple[int, ...]
    told: int  # dimension
    untold: int
    places: int  # along either
    merged: Op


def told_twice(deep: DeepStep) -> TwiceTold | None:
    graph, data = StepGraph(deep), data_values(deep)
    known: dict[int, Told] = {}
    learned: dict[int, bool] = {}
    laid: dict[frozenset[int], Op] = {}
    for op in graph.ops:
        if op.name in _MERGING and op.inputs and op.inputs[0].id in known:
            value = op.inputs[0]
            found = _twice(op, value, known[value.id], learned, laid, value.id in data)
            if found is not None and not _told_later(graph, found, data):
                return found
        for value in op.inputs:
            if value.id not in known and value.id not in data and graph.maker(value) is None:
                table = _table(value)
                if table is not None:
                    known[value.id], learned[value.id] = table, value.requires_grad
        made = _along(op, known, data)
        if made is None or not op.outputs or len(made) != len(op.outputs[0].shape):
            continue
        known[op.outputs[0].id] = made
        for tables in made if op.name in ADDING else ():
            if len(tables - {_FEATURES}) == 2:
                laid.setdefault(tables, op)
    return None


def _table(value: Value) -> Told | None:
    """A code for each row, and nothing else: (rows, features), with room for broadcasting."""
    rows = [k for k, size in enumerate(value.shape[:-1]) if size > 1]
    if not value.dtype.startswith(("float", "bfloat")) or len(rows) != 1 or value.shape[-1] < 2:
        return None
    own = frozenset({value.id})
    return (*(own if k in rows else _NEW for k in range(len(value.shape) - 1)), _features())


def _features() -> frozenset[int]:
    return frozenset({_FEATURES})


def _along(op: Op, known: dict[int, Told], data: set[int]) -> Told | None:
    """Which tables lie along the dimensions of a result, as far as that is certain."""
    given = op.inputs[0] if op.inputs else None
    if given is None or not op.outputs:
        return None
    if op.name == "embedding":
        return _looked_up(op, known, data)
    if op.name in ADDING:
        return _together(op, known, data)
    told = known.get(given.id)
    if told is None:
        return None
    shape = op.outputs[0].shape
    if op.name in _KEEPING or (op.name in ("mul", "div") and len(op.inputs) == 1):
        return told
    if op.name in _ARRANGING:
        order = rearranged(op, list(range(len(told))))
        return tuple(told[k] if k >= 0 else _NEW for k in order) if order is not None else None
    if op.name in ("__getitem__", "narrow"):
        return _cut(op, told)
    if op.name in _SPREADING and len(shape) >= len(told):
        sizes = (1,) * (len(shape) - len(told)) + given.shape
        told = (_NEW,) * (len(shape) - len(told)) + told
        same = zip(sizes, shape, told, strict=True)
        return told if all(now == size or size == 1 for size, now, _ in same) else None
    return None


def _looked_up(op: Op, known: dict[int, Told], data: set[int]) -> Told | None:
    """Rows of a table one after the other, from the first on."""
    ids, table = op.inputs[0], op.inputs[1] if len(op.inputs) > 1 else None
    rows = [k for k, size in enumerate(ids.shape) if size > 1]
    counted = len(rows) == 1 and ids.min == 0 and ids.max == ids.shape[rows[0]] - 1
    if table is None or table.id not in known or ids.id in data or not counted:
        return None
    own = frozenset({table.id})
    return (*(own if k in rows else _NEW for k in range(len(ids.shape))), _features())


def _cut(op: Op, told: Told) -> Told | None:
    if op.name == "narrow":
        return told
    parts = str(op.args.get("index", "")).strip("[]()").replace(" ", "").split(",")
    left, made = list(told), list[frozenset[int]]()
    for part in parts:
        if part == "None":
            made.append(_NEW)
        elif part.startswith(":") and left:  # from the first row on
            made.append(left.pop(0))
        elif part == "..." and part == parts[0]:
            whole = len(left) - sum(p != "None" for p in parts[1:])
            made, left = left[:whole], left[whole:]
        else:
            return None
    return (*made, *left)


def _together(op: Op, known: dict[int, Told], data: set[int]) -> Told | None:
    """A sum, or codes beside each other in one vector. Data says nothing of places by itself."""
    tables = [known.get(value.id) for value in op.inputs]
    if not any(tables) or any(
        told is None and value.id not in data for told, value in zip(tables, op.inputs, strict=True)
    ):
        return None
    rank = len(op.outputs[0].shape)
    made = [_NEW] * rank
    for told in tables:
        for back, own in enumerate(reversed(told or ()), start=1):
            made[rank - back] |= own
    if op.name == "cat":
        dim = op.args.get("dim", 0)
        if not isinstance(dim, int) or _FEATURES not in made[dim % rank]:
            return None
    return tuple(made)


def _twice(
    op: Op,
    value: Value,
    told: Told,
    learned: dict[int, bool],
    laid: dict[frozenset[int], Op],
    is_data: bool,
) -> TwiceTold | None:
    shape, made = value.shape, op.outputs[0].shape if op.outputs else ()
    for first in range(1 if is_data else 0, len(shape) - 1):
        places = shape[first]
        merged = (*shape[:first], places * places, *shape[first + 2 :])
        if shape[first + 1] != places or made[max(0, len(made) - len(merged)) :] != merged:
            continue
        for here, there in ((first, first + 1), (first + 1, first)):
            tables = told[here]
            alike = len({learned.get(t) for t in tables}) == 1
            if len(tables) == 2 and not told[there] and alike and tables in laid:
                return TwiceTold(laid[tables], shape, here, there, places, op)
    return None


def _told_later(graph: StepGraph, found: TwiceTold, data: set[int]) -> bool:
    """All positions get a code of their own once they stand in one row."""
    sizes = {found.places**2, found.places**2 + 1}
    mine = graph.reached(found.merged.outputs)
    return any(_adds_codes(op, sizes, mine | data) for op in graph.ops)


def _adds_codes(op: Op, sizes: set[int], mine: set[int]) -> bool:
    others: Iterator[Value] = (v for v in op.inputs if v.id not in mine)
    return op.name in ("add", "add_") and any(sizes & set(v.shape) for v in others)
