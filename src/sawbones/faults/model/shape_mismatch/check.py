"""Two values whose shapes do not fit are added, multiplied, joined, viewed or compared

## What it sees
The record of a crash in an operator between values, or in a loss: the shapes of both sides. Fires
when they cannot be broadcast (arithmetic), multiplied (matrices), joined (cat, stack), viewed
(another number of values), or set against each other (scores and targets), on the step of the
crash.

## Why it matters
The script ends here.

## Looks like
RuntimeError: The size of tensor a must match the size of tensor b, shape is invalid for input of
size, or Expected input batch_size to match target batch_size.

## Example
    y = y.float()  # 40
    loss = nn.BCELoss()(model(x), y)  # 40 x 1

## Use instead
    y = y.float().unsqueeze(1)  # 40 x 1
    loss = nn.BCELoss()(model(x), y)

## Confirm it
Nothing is left to confirm: both shapes are in the record.

## False alarms
Only an operation that was refused is looked at, and only one whose shapes really cannot fit. A
layer that was built for another width is model.width-mismatch; samples of one batch that differ are
pipeline.ragged-batch.

## References
A view with the batch size written as a number, which the last batch does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_shapes import (
    broadcast_clash,
    joining_clash,
    product_clash,
    view_clash,
    written,
)
from sawbones.stats.crashes import Given, Refusal, crash, frame_of, makers, refusal
from sawbones.stats.failures import failure
from sawbones.stats.loss_calls import as_site

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
_ELEMENTWISE = ("add", "sub", "mul", "div", "pow", "eq", "lt", "gt", "lte", "gte", "noteq", "where")
_PRODUCTS = ("matmul", "mm", "bmm", "mv", "dot", "addmm", "__matmul__")
_JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")
_VIEWING = ("view", "reshape", "view_as", "unflatten")
# Calls that add, drop, join or swap axes.
_FORMING = (
    "squeeze",
    "unsqueeze",
    "permute",
    "transpose",
    "t",
    "flatten",
    "mean",
    "sum",
    "max",
    "amax",
    "repeat",
    "expand",
)
_BY_CLASS = ("cross_entropy", "nll_loss")


_HALVED = (
    "Sides that are halved on the way down come back only where they are divisible by 2 "
    "at every level: use images whose sides are multiples of 2 to the number of halvings, "
    "or pad or crop one value to the size of the other before joining."
)


@dataclass(frozen=True)
class Clash:
    title: str
    expected: str
    got: str
    fix: str
    exactly: tuple[float, float] | None


def check(run: Run) -> Iterator[Finding]:
    call = refusal(run)
    if call is None or not (_has_shapes(call, run) or _flattens(call)):
        raise NothingToJudge("no operation of torch between values was refused")
    if call.module is not None and not call.module.home.startswith("torch.nn.modules.loss"):
        yield from _state(run, call)
        return
    sides = _sides(run, call)
    clash = (
        _loss(call, sides)
        or _joined(call)
        or _viewed(call)
        or _multiplied(call, sides)
        or _combined(call, sides)
    )
    if clash is None:
        return
    of_loss = call.module is not None or "loss" in call.name
    named = [a for g in (sides[1::-1] if of_loss else sides[:2]) for a in makers(run, g.name)[:2]]
    made = [a for a in named if a.site.line != call.frame.site.line]
    roots: list[Site | None] = list([a.site for a in made if _reshapes(a.calls)][:1])
    roots = roots or [*_rows_changed(run, sides)]
    roots = roots or [*(_squeezing(run, call) if call.name in _JOINING else ())]
    roots = roots or [*(_built(run, g) for g in sides[:2]), *(a.site for a in made[:1])]
    because = "; ".join(
        f"{a.name} comes from {a.text} (line {a.site.line})" for a in made[:2] if a.text
    )
    viewing = call.name in _VIEWING
    first: list[Site | None] = [call.frame.site] if viewing else []
    yield explained(
        run,
        clash.title,
        (*first, *roots, call.frame.site, *(a.site for a in made[:2])),
        Fix(clash.fix),
        expected=clash.expected,
        got=clash.got,
        because=because,
        sizes=[Size(g.name, written(g.bound.shape), g.bound.dtype) for g in sides[:4]],
        exactly=clash.exactly,
    )


def _rows_changed(run: Run, sides: list[Given]) -> list[Site]:
    """Where the trace of a deep step shows that the number of rows of one side became that of the
    other.
    """
    firsts = [g.bound.shape[0] for g in sides[:2] if g.bound.shape]
    if len(firsts) != 2 or firsts[0] == firsts[1]:
        return []
    for op in reversed(crash(run).recent):
        given, made = (_first_axis(op.get(key)) for key in ("inputs", "outputs"))
        site = as_site(op.get("site"))
        if {given, made} == set(firsts) and site is not None:
            return [site]
    return []


def _first_axis(values: object) -> int:
    rows = values if isinstance(values, (list, tuple)) else ()
    shape = rows[0].get("shape") if rows and isinstance(rows[0], Mapping) else None
    return int(shape[0]) if shape else -1


def _state(run: Run, call: Refusal) -> Iterator[Finding]:
    """The state that a recurrent layer is given has another batch than its input."""
    frame = frame_of(crash(run), "check_hidden_size")
    state = frame.values.get("hx") if frame is not None else None
    sizes = frame.values.get("expected_hidden_size") if frame is not None else None
    if state is None or sizes is None or state.kind != "tensor":
        return
    wanted = tuple(int(item.value or 0) for item in sizes.items)
    pairs = [(a, b) for a, b in zip(state.shape, wanted, strict=False) if a != b]
    named = [g.name for g in call.given if g.bound.kind in ("tensor", "sequence")][1:2]
    made = [a for name in named for a in makers(run, name) if a.text]
    yield explained(
        run,
        f"{call.layer} is given a state of {written(state.shape)} and needs {written(wanted)}",
        (*(a.site for a in made[:1]), call.frame.site),
        Fix(
            f"Make the state for the batch in hand: torch.zeros({', '.join(map(str, wanted))}), "
            "with x.size(0) for the batch."
        ),
        expected=written(wanted),
        got=written(state.shape),
        because=f"the batch has {wanted[1]} rows" if len(wanted) == 3 else "",
        sizes=[Size(g.name, written(g.bound.shape)) for g in call.tensors[:2]],
        exactly=pairs[0] if pairs else (len(state.shape), len(wanted)),
    )


def _built(run: Run, given: Given) -> Site | None:
    """Where the layer was built that this value came out of, by its shape."""
    shape = list(given.bound.shape)
    if not given.bound.node:
        return None
    for row in reversed(run.ending.modules):
        outputs = row.get("outputs") or ()
        if outputs and list(outputs[0][1]) == shape and not row.get("failed"):
            path = row.get("path")
            return next((m.built for m in run.modules if m.path == path), None)
    return None


def _has_shapes(call: Refusal, run: Run) -> bool:
    found = [b for g in call.given for b in (g.bound, *g.bound.items)]
    traced = failure(run)
    return any(b.kind == "tensor" for b in found) or (traced is not None and bool(traced.inputs))


def _reshapes(calls: Sequence[str]) -> bool:
    return any(name in (*_VIEWING, *_FORMING) for name in calls)


def _sides(run: Run, call: Refusal) -> list[Given]:
    """The tensors of the call; values that no name holds are known from the trace of a deep step."""
    known = list(call.tensors)
    traced = failure(run)
    if len(known) > 1 or traced is None or traced.site is None:
        return known
    if traced.site.line != call.frame.site.line:
        return known
    texts = [o.text for o in call.expression.operands] or ["a", "b"]
    found = []
    for number, value in enumerate(traced.inputs[:4]):
        bound = Bound(
            "tensor",
            "Tensor",
            shape=tuple(value.get("shape") or ()),
            dtype=str(value.get("dtype", "")),
        )
        found.append(Given(texts[number] if number < len(texts) else f"input {number}", bound))
    return found


def _loss(call: Refusal, sides: list[Given]) -> Clash | None:
    of_loss = call.module is not None or "loss" in call.name or "entropy" in call.name
    if not of_loss or len(sides) < 2:
        return None
    scores, target = sides[0], sides[1]
    a, b = scores.bound.shape, target.bound.shape
    name = call.layer
    if call.name in _BY_CLASS and target.bound.dtype.startswith("int"):
        return _by_class(name, scores, target)
    labels = call.name in _BY_CLASS and len(b) == len(a) - 1  # of another dtype
    if a == b or labels:
        return None
    trailing = (*b, 1) == a
    fix = (
        f"Give {target.name} the axis: {target.name}.unsqueeze(1)."
        if trailing
        else f"Remove the axis of {target.name}: {target.name}.squeeze(1)."
        if (*a, 1) == b
        else f"Bring {target.name} to the shape of {scores.name}: {written(a)}."
    )
    return Clash(
        f"{name} is given scores of {written(a)} and targets of {written(b)}",
        f"targets of the shape of the scores, {written(a)}",
        written(b),
        fix,
        (prod(b), prod(a)) if prod(a) != prod(b) else (len(b), len(a)),
    )


def _by_class(name: str, scores: Given, target: Given) -> Clash | None:
    a, b = scores.bound.shape, target.bound.shape
    wanted = (a[0], *a[2:]) if len(a) > 1 else ()
    if b == wanted or not a:
        return None
    if b == (*wanted, 1):
        fix = f"Remove the last axis of the labels: {target.name}.squeeze(-1)."
    elif len(a) == 3 and b == a[:2]:
        fix = f"The classes belong on axis 1: {scores.name}.transpose(1, 2)."
    elif len(b) == 1 and a[0] != b[0]:
        fix = (
            f"Keep one row per label on the way to {scores.name}: "
            "x.view(x.size(0), -1) instead of view(-1, n)."
        )
    else:
        fix = f"Give one label per row: a shape of {written(wanted)}."
    return Clash(
        f"{name} is given scores of {written(a)} and labels of {written(b)}",
        f"labels of {written(wanted)}, one for each row of {scores.name}",
        written(b),
        fix,
        (prod(b), prod(wanted)) if prod(b) != prod(wanted) else (len(b), len(wanted)),
    )


def _joined(call: Refusal) -> Clash | None:
    if call.name not in _JOINING:
        return None
    rows = next((o.bound for o in call.expression.operands if o.bound and o.bound.items), None)
    if rows is None or any(item.kind != "tensor" for item in rows.items):
        return None
    numbers = [o for o in call.expression.operands if o.bound and o.bound.kind == "number"]
    axis = int(numbers[0].bound.value or 0) if numbers and numbers[0].bound else 0
    stacked = call.name == "stack"
    shapes = [item.shape for item in rows.items]
    learned = any(item.requires_grad for item in rows.items)
    if stacked and not learned and all(shapes):
        return None
    clash = joining_clash(shapes, len(shapes[0]) + 1 if stacked else axis)
    if clash is None:
        return None
    number, place = clash
    if not all(shapes):
        return _axis_squeezed(call, shapes)
    first, other = shapes[0], shapes[number]
    sizes = (len(other), len(first)) if place == -1 else (other[place], first[place])
    what = "number of axes" if place == -1 else f"size along axis {place}"
    advice = f"Give both the same {what}, or join them along another axis (dim)."
    if place > 1 and learned and _feature_maps(first, other, place):
        advice = _HALVED
    return Clash(
        f"{call.name} joins values of {written(first)} and {written(other)}",
        f"the same {what} everywhere, {sizes[1]} as in the first",
        f"{sizes[0]} in number {number + 1}",
        advice,
        sizes,
    )


def _feature_maps(a: tuple[int, ...], b: tuple[int, ...], place: int) -> bool:
    """Two values with sides besides batch and channels; one side only where a halving is all that
    can have changed it.
    """
    return len(a) == len(b) and (len(a) > 3 or abs(a[place] - b[place]) == 1)


def _squeezing(run: Run, call: Refusal) -> list[Site]:
    """Where the values of a list lose their axis: in the lines that they come from, or in the
    forward pass of the module that makes them.
    """
    frame = call.frame
    names = {o.text for o in call.expression.operands if o.bound is not None and o.bound.items}
    added = [a for a in frame.assignments if a.how == "append" and a.name in names]
    lines = [*added, *(m for a in added for name in a.reads for m in makers(run, name))]
    for made in lines:
        modules = [frame.values[name] for name in made.calls if name in frame.values]
        inside = [m.lines["squeeze"] for m in modules if "squeeze" in m.lines]
        if "squeeze" in made.calls or inside:
            return [*inside, made.site]
    return [a.site for a in added[:1]]


def _axis_squeezed(call: Refusal, shapes: Sequence[tuple[int, ...]]) -> Clash:
    """One of the values has no axis at all: a batch of one lost its own."""
    number = next(i for i, shape in enumerate(shapes, start=1) if not shape)
    return Clash(
        f"{call.name} joins {len(shapes)} values, and number {number} has no axis left",
        f"an axis in each of them, as in {written(max(shapes, key=len))}",
        f"a single number in place {number}",
        "Name the axis that may go where the values are made: squeeze(-1) or squeeze(1), never "
        "squeeze() alone, which takes the axis of a batch of one as well.",
        (0, 1),
    )


def _viewed(call: Refusal) -> Clash | None:
    operands = call.expression.operands
    if call.name not in _VIEWING or not operands:
        return None
    if operands[0].bound is None and _flattens(call):
        return _in_pieces(operands[0].text, "a tensor")
    wanted = _asked([o.bound for o in operands[1:]])
    if not wanted or operands[0].bound is None or operands[0].bound.kind != "tensor":
        return None
    shape = operands[0].bound.shape
    asked = " x ".join(map(str, wanted))
    total = prod(shape)
    if view_clash(shape, wanted) == "layout":
        return _in_pieces(operands[0].text, written(shape))
    known = prod(size for size in wanted if size != -1)
    first = shape[0] if shape else 1
    return Clash(
        f"{operands[0].text} has {total} values and is to become {asked}",
        f"a multiple of {known} values" if -1 in wanted else f"{known} values",
        f"{total} ({operands[0].text} is {written(shape)})",
        f"Let the batch keep its size: {operands[0].text}.view({operands[0].text}.size(0), -1) "
        f"gives {first} x {total // max(first, 1)}.",
        (total, known),
    )


def _flattens(call: Refusal) -> bool:
    """view(-1): a single axis fits any number of values."""
    sizes = [o.text.replace(" ", "") for o in call.expression.operands[1:]]
    return call.name == "view" and sizes == ["-1"]


def _in_pieces(name: str, what: str) -> Clash:
    return Clash(
        f"{name} cannot be viewed without copying it",
        "values that lie one after another",
        f"{what} after a transpose, permute or slice",
        f"Use {name}.reshape(...) in place of view(...).",
        None,
    )


def _asked(sizes: Sequence[Bound | None]) -> list[int]:
    """The sizes as numbers; none where one of them is computed on the line itself."""
    if len(sizes) == 1 and sizes[0] is not None and sizes[0].kind == "sequence":
        sizes = sizes[0].items
    known = [b for b in sizes if b is not None and b.kind == "number" and b.value is not None]
    return [int(b.value or 0) for b in known] if len(known) == len(sizes) else []


def _multiplied(call: Refusal, sides: list[Given]) -> Clash | None:
    if call.name not in _PRODUCTS or len(sides) < 2:
        return None
    a, b = sides[-2:] if call.name == "addmm" else sides[:2]
    clash = product_clash(a.bound.shape, b.bound.shape)
    if clash is None:
        return None
    columns, rows = clash
    turned = b.bound.shape[-1] == columns
    fix = (
        f"Turn {b.name} over: {b.name}.transpose(-2, -1)."
        if turned
        else f"Give {b.name} {columns} rows, or {a.name} {rows} columns."
    )
    return Clash(
        f"A matrix product of {written(a.bound.shape)} and {written(b.bound.shape)}",
        f"{columns} rows in {b.name}, as many as {a.name} has columns",
        f"{rows} ({b.name} is {written(b.bound.shape)})",
        fix,
        (rows, columns),
    )


def _combined(call: Refusal, sides: list[Given]) -> Clash | None:
    if call.name.strip("_") not in _ELEMENTWISE or len(sides) < 2:
        return None
    a, b = sides[0], sides[1]
    clash = broadcast_clash(a.bound.shape, b.bound.shape)
    if clash is None:
        return None
    axis, left, right = clash
    fix = f"Give {b.name} size {left} along axis {axis} where it is made."
    place = len(a.bound.shape) + axis
    same = len(a.bound.shape) == len(b.bound.shape) and bool(a.bound.node and b.bound.node)
    if same and place > 1 and _feature_maps(a.bound.shape, b.bound.shape, place):
        fix = _HALVED
    return Clash(
        f"{a.name} ({written(a.bound.shape)}) and {b.name} ({written(b.bound.shape)}) "
        f"do not fit in {call.expression.text}",
        f"the same size along axis {axis}, or 1",
        f"{left} in {a.name}, {right} in {b.name}",
        fix,
        (right, left),
    )
