"""Products and sums that a softmax enters, and which of its dimensions they run over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.schema import Op, Value
from sawbones.trace.graph import StepGraph

NEW = -1  # a dimension that the softmax did not have
MOVING = frozenset({"transpose", "mT", "permute"})
WIDENING = frozenset({"unsqueeze", "__getitem__"})
PRODUCTS = frozenset({"matmul", "bmm", "baddbmm", "mm"})
_CARRYING = frozenset(
    {"dropout", "contiguous", "to", "float", "clone", "half", "type_as", "feature_dropout"}
)


@dataclass(frozen=True)
class Weighing:
    """Values multiplied with another tensor and summed over one dimension."""

    user: Op
    summed: int  # dimension of the softmax, or NEW
    other: Value | None  # what they were multiplied with
    result: Value
    order: list[int]  # of the result: which dimension of the softmax each one is


def weighings(graph: StepGraph, made: Value, order: list[int], index: int) -> Iterator[Weighing]:
    for user, value, current in users(graph, made, order, index):
        found = _weighing(graph, user, value, current)
        if found is not None:
            yield found


def users(
    graph: StepGraph, made: Value, order: list[int], index: int
) -> Iterator[tuple[Op, Value, list[int]]]:
    """Operators that use a value, with the order of the softmax's dimensions in what they are
    given.
    """
    forms: dict[int, list[int]] = {made.id: order}
    for user in graph.ops:
        if user.index <= index:
            continue
        for value in user.inputs:
            known = forms.get(value.id)
            if known is None:
                continue
            if user.name in _CARRYING and user.outputs:
                forms.setdefault(user.outputs[0].id, known)
            elif user.name in (*MOVING, *WIDENING) and user.outputs:
                moved = rearranged(user, known)
                if moved is not None:
                    forms.setdefault(user.outputs[0].id, moved)
            else:
                yield user, value, known


def is_learned_axis(graph: StepGraph, value: Value, axis: int, before: int) -> bool:
    """The dimension counts the rows of something learned, however many elements the data has:
    slots, clusters, experts.
    """
    place: int | None = axis
    for _ in range(64):
        op = graph.maker(value, before)
        if op is None:
            return value.requires_grad
        if _makes_axis(op, place or 0):
            return True
        came = _came_from(op, place or 0)
        if came is None:
            return False
        (value, place), before = came, op.index
    return False


def rearranged(op: Op, order: list[int]) -> list[int] | None:
    """The dimensions after an operator that moves them, or adds some of size 1 (NEW)."""
    return _moved(op, order) if op.name in MOVING else _widened(op, order)


def _widened(op: Op, order: list[int]) -> list[int] | None:
    """With new dimensions of size 1: unsqueeze, or an index of whole slices and None."""
    if op.name == "unsqueeze":
        dim = op.args.get("dim")
        place = dim % (len(order) + 1) if isinstance(dim, int) else None
        return [*order[:place], NEW, *order[place:]] if place is not None else None
    parts = str(op.args.get("index", "")).strip("[]").replace(" ", "").split(",")
    if not {":", "None", "..."}.issuperset(parts) or "None" not in parts or parts.count("...") > 1:
        return None
    whole = [p for p in parts if p != "None"]
    if "..." not in parts:
        parts.append("...")
    rest = len(order) - sum(p == ":" for p in whole)
    places_left, made = iter(order), []
    for part in parts:
        made += (
            [NEW]
            if part == "None"
            else [next(places_left) for _ in range(1 if part == ":" else rest)]
        )
    return made


def _moved(op: Op, order: list[int]) -> list[int] | None:
    rank = len(order)
    if op.name == "mT":
        return [*order[:-2], order[-1], order[-2]]
    if op.name == "permute":
        dims = op.args.get("dims") or op.args.get("sizes")
        return (
            [order[d % rank] for d in dims]
            if isinstance(dims, (list, tuple)) and len(dims) == rank
            else None
        )
    first, second = op.args.get("dim0"), op.args.get("dim1")
    if not isinstance(first, int) or not isinstance(second, int):
        return None
    made = list(order)
    made[first % rank], made[second % rank] = made[second % rank], made[first % rank]
    return made


def _weighing(graph: StepGraph, user: Op, value: Value, order: list[int]) -> Weighing | None:
    """None when this is neither a product that sums nor one that is summed next."""
    if not user.outputs:
        return None
    if user.name in PRODUCTS and len(user.inputs) >= 2 and len(order) >= 2:
        return _of_product(user, value, order)
    if user.name == "einsum":
        return _of_einsum(user, value, order)
    if user.name == "mul" and len(user.inputs) == 2:
        return _of_mul(graph, user, value, order)
    return None


def _of_product(user: Op, value: Value, order: list[int]) -> Weighing:
    first, second = user.inputs[-2:]
    is_first = first.id == value.id
    other = second if is_first else first
    summed, kept = (order[-1], order[-2]) if is_first else (order[-2], order[-1])
    last = [kept] if len(other.shape) == 1 else [kept, NEW] if is_first else [NEW, kept]
    result = user.outputs[0]
    ahead = [NEW] * (len(result.shape) - len(last) - len(order) + 2) + order[:-2]
    return Weighing(user, summed, other, result, [*ahead, *last])


def _of_einsum(user: Op, value: Value, order: list[int]) -> Weighing | None:
    terms, right = einsum_terms(user)
    place = next((i for i, v in enumerate(user.inputs) if v.id == value.id), None)
    if place is None or place >= len(terms) or len(terms[place]) != len(order):
        return None
    mine = dict(zip(terms[place], order, strict=True))
    gone = [dim for letter, dim in mine.items() if letter not in right]
    if len(gone) != 1:
        return None
    others = [v for i, v in enumerate(user.inputs[: len(terms)]) if i != place]
    made = [mine.get(letter, NEW) for letter in right]
    other = others[0] if len(others) == 1 else None
    return Weighing(user, gone[0], other, user.outputs[0], made)


def einsum_terms(op: Op) -> tuple[list[str], str]:
    """The letters of every input and those of the result; nothing where not all are spelled out."""
    equation = str(op.args.get("equation", op.args.get("args", ""))).replace(" ", "")
    left, arrow, right = equation.partition("->")
    return (left.split(","), right) if arrow and "." not in equation else ([], "")


def _of_mul(graph: StepGraph, user: Op, value: Value, order: list[int]) -> Weighing | None:
    other = user.inputs[1] if user.inputs[0].id == value.id else user.inputs[0]
    if len(other.shape) != len(order) or not other.requires_grad:
        return None
    for after in graph.users(user.outputs[0]):
        dim = after.args.get("dim") if after.name == "sum" else None
        dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
        if not isinstance(dim, int) or not after.outputs:
            continue
        place = dim % len(order)
        made = [NEW if i == place else known for i, known in enumerate(order)]
        if len(after.outputs[0].shape) < len(order):
            made.pop(place)
        return Weighing(user, order[place], other, after.outputs[0], made)
    return None


def _makes_axis(op: Op, axis: int) -> bool:
    """A layer that gives this dimension a size of its own."""
    rank = len(op.outputs[0].shape) if op.outputs else 0
    if op.name in ("linear", "embedding", "addmm"):
        return axis == rank - 1
    return op.name.startswith("conv") and axis == 1


def _came_from(op: Op, axis: int) -> tuple[Value, int] | None:
    """The input that a dimension of the result was one of, and which it was there."""
    if not op.inputs or not op.outputs:
        return None
    given, made = op.inputs[0], op.outputs[0]
    if op.name in PRODUCTS and len(op.inputs) >= 2:
        return _of_factors(op, axis)
    if op.name == "einsum":
        terms, right = einsum_terms(op)
        letter = right[axis] if axis < len(right) else "?"
        held = [(v, t.index(letter)) for v, t in zip(op.inputs, terms, strict=False) if letter in t]
        return held[0] if held else None
    if op.name in MOVING:
        order = _moved(op, list(range(len(given.shape))))
        return (given, order[axis]) if order is not None else None
    if op.name == "sum":
        dim = op.args.get("dim")
        gone = dim % len(given.shape) if isinstance(dim, int) else None
        if gone is None:
            return None
        kept = len(made.shape) == len(given.shape)
        return given, axis if kept or axis < gone else axis + 1
    for value in op.inputs:  # element by element, or a view
        place = _same_place(value.shape, made.shape, axis)
        if place is not None:
            return value, place
    return None


def _of_factors(op: Op, axis: int) -> tuple[Value, int] | None:
    first, second = op.inputs[-2:]
    back = len(op.outputs[0].shape) - axis  # counted from the end, from 1
    if back == 1 and len(second.shape) > 1:
        return second, len(second.shape) - 1
    if back == 2 and len(first.shape) > 1:
        return first, len(first.shape) - 2
    for value in (first, second):
        if back > 2 and len(value.shape) >= back and value.shape[-back] > 1:
            return value, len(value.shape) - back
    return None


def _same_place(given: tuple[int, ...], made: tuple[int, ...], axis: int) -> int | None:
    """Where a dimension was before a view, or before smaller tensors were broadcast."""
    size, sizes = made[axis], _product(made)
    back = axis - len(made)
    if _product(given) != sizes:  # broadcast, or a part of it
        return len(given) + back if len(given) >= -back and given[back] == size else None
    ahead = _product(made[:axis])
    return next(
        (k for k, n in enumerate(given) if n == size and _product(given[:k]) == ahead), None
    )


def _product(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
