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
from dataclasses import replace
from math import prod

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_branches import condition_of
from sawbones.stats.crash_clashes import (
    VIEWING,
    Clash,
    einsum_clash,
    flattens,
    labels_clash,
    listed,
    mask_clash,
    swapped,
    viewed_clash,
)
from sawbones.stats.crash_origins import brought_in, sites
from sawbones.stats.crash_shapes import broadcast_clash, joining_clash, product_clash, written
from sawbones.stats.crash_sides import HALVED, feature_maps, halved_side, numbers_of
from sawbones.stats.crashes import Given, Refusal, crash, frame_of, makers, refusal
from sawbones.stats.failures import failure
from sawbones.stats.loss_calls import as_site
from sawbones.stats.lost_axes import lost_axis

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
_ELEMENTWISE = ("add", "sub", "mul", "div", "pow", "eq", "lt", "gt", "lte", "gte", "noteq", "where")
_PRODUCTS = ("matmul", "mm", "bmm", "mv", "dot", "addmm", "__matmul__")
_JOINING = ("cat", "concat", "concatenate", "stack", "hstack", "vstack")
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


def check(run: Run) -> Iterator[Finding]:
    call = refusal(run)
    if call is None or not (_has_shapes(call, run) or flattens(call)):
        raise NothingToJudge("no operation of torch between values was refused")
    if call.module is not None and not call.module.home.startswith("torch.nn.modules.loss"):
        yield from _state(run, call)
        return
    if any(g.bound.kind in ("sequence", "mapping") for g in call.given[:2]) and _of_loss(call):
        return  # a tuple was not taken apart
    if lost_axis(run, call) is not None:
        return  # no shape of another kind, but an axis too few
    sides = _sides(run, call)
    clash = (
        _loss(call, sides)
        or _joined(call)
        or viewed_clash(call)
        or einsum_clash(call)
        or mask_clash(call)
        or _multiplied(call, sides)
        or _combined(call, sides)
    )
    if clash is None:
        return
    of_loss = call.module is not None or "loss" in call.name
    if call.name == "einsum":
        sides = list(call.tensors)
    named = [a for g in (sides[1::-1] if of_loss else sides[:2]) for a in makers(run, g.name)[:2]]
    made = [a for a in named if a.site.line != call.frame.site.line]
    roots: list[Site | None] = list([a.site for a in made if _reshapes(a.calls)][:1])
    halved = halved_side(run, sides) if clash.fix == HALVED else None
    if halved is not None:
        clash = replace(clash, fix=f"{halved.advice} {clash.fix}")
        roots = [*numbers_of(run, halved.side), call.frame.site]
    if clash.fix.endswith(HALVED):
        texts = [o.text for o in call.expression.operands]
        roots = [*sites(brought_in(run, *(g.name for g in sides[:2]), *texts)), *roots]
    roots = roots or [*_rows_changed(run, sides)]
    roots = roots or [*(_built(run, g) for g in sides[:2]), *(a.site for a in made[:1])]
    because = "; ".join(
        f"{a.name} comes from {a.text} (line {a.site.line})" for a in made[:2] if a.text
    )
    viewing = call.name in VIEWING
    condition = condition_of(call.frame, [g.name for g in sides[:2]]) if viewing else None
    first: list[Site | None] = [call.frame.site] if viewing else []
    if condition is not None:
        because = "; ".join(filter(None, (condition.text, because)))
        first.insert(0, condition.site)
    yield explained(
        run,
        clash.title,
        (*first, *roots, call.frame.site, *(a.site for a in made[:2])),
        Fix(condition.fix if condition is not None and condition.fix else clash.fix),
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
        (
            *(a.site for a in made[:1]),
            call.frame.site,
            call.module.built.site if call.module is not None and call.module.built else None,
        ),
        Fix(
            f"Make the state for the batch in hand: torch.zeros({', '.join(map(str, wanted))}), "
            "with x.size(0) for the batch."
            if not _other_layers(state.shape, wanted)
            else f"Give it one state for each of its {wanted[0]} layers and directions: where the "
            f"state is taken from another recurrent layer, keep all of them (h[0::2], h[1::2] for "
            f"both directions), or build {call.layer} with as many layers as there are states."
        ),
        expected=written(wanted),
        got=written(state.shape),
        because=_why_state(call, state.shape, wanted),
        sizes=[Size(g.name, written(g.bound.shape)) for g in call.tensors[:2]],
        exactly=pairs[0] if pairs else (len(state.shape), len(wanted)),
    )


def _other_layers(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and shape[1:] == wanted[1:]


def _why_state(call: Refusal, shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if _other_layers(shape, wanted) and call.module is not None:
        layers = call.module.settings.get("num_layers")
        return f"{call.layer} has {layers} layers; the state has {shape[0]}"
    return f"the batch has {wanted[1]} rows" if len(wanted) == 3 else ""


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
    return any(name in (*VIEWING, *_FORMING) for name in calls)


def _sides(run: Run, call: Refusal) -> list[Given]:
    """The tensors of the call; values that no name holds are known from the trace of a deep step."""
    known = list(call.tensors) or listed(call)
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


def _of_loss(call: Refusal) -> bool:
    return call.module is not None or "loss" in call.name or "entropy" in call.name


def _loss(call: Refusal, sides: list[Given]) -> Clash | None:
    if not _of_loss(call) or len(sides) < 2:
        return None
    scores, target = sides[0], sides[1]
    a, b = scores.bound.shape, target.bound.shape
    name = call.layer
    if call.name in _BY_CLASS and target.bound.dtype.startswith("int"):
        return labels_clash(name, scores, target)
    maps = (a[0], 1, *a[2:]) if len(a) > 3 else ()
    if call.name in _BY_CLASS and b == maps:
        return labels_clash(name, scores, target)
    labels = call.name in _BY_CLASS and len(b) == len(a) - 1  # of another dtype
    if a == b or labels:
        return None
    trailing = (*b, 1) == a
    fix = (
        f"Give {target.name} the axis: {target.name}.unsqueeze(1)."
        if trailing
        else f"Remove the axis of {target.name}: {target.name}.squeeze(1)."
        if (*a, 1) == b
        else f"Give {target.name} the axis of the batch: {target.name}.unsqueeze(0)."
        if (1, *b) == a
        else f"Bring {target.name} to the shape of {scores.name}: {written(a)}."
    )
    return Clash(
        f"{name} is given scores of {written(a)} and targets of {written(b)}",
        f"targets of the shape of the scores, {written(a)}",
        written(b),
        fix,
        (prod(b), prod(a)) if prod(a) != prod(b) else (len(b), len(a)),
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
        return _without_axis(call, shapes)
    first, other = shapes[0], shapes[number]
    sizes = (len(other), len(first)) if place == -1 else (other[place], first[place])
    what = "number of axes" if place == -1 else f"size along axis {place}"
    advice = f"Give both the same {what}, or join them along another axis (dim)."
    if place == 0 and len(first) == len(other) and first[1:] != other[1:]:
        advice = (
            f"Both need the rows of this batch ({sizes[0]} and {sizes[1]}): take the number from "
            "the batch in hand, x.size(0), and not from a setting."
        )
    if place > 1 and learned and feature_maps(first, other, place):
        advice = HALVED
    return Clash(
        f"{call.name} joins values of {written(first)} and {written(other)}",
        f"the same {what} everywhere, {sizes[1]} as in the first",
        f"{sizes[0]} in number {number + 1}",
        advice,
        sizes,
    )


def _without_axis(call: Refusal, shapes: Sequence[tuple[int, ...]]) -> Clash:
    number = next(i for i, shape in enumerate(shapes, start=1) if not shape)
    return Clash(
        f"{call.name} joins {len(shapes)} values, and number {number} has no axis",
        f"an axis in each of them, as in {written(max(shapes, key=len))}",
        f"a single number in place {number}",
        "Give single numbers an axis before they are joined: value.reshape(1).",
        (0, 1),
    )


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
    turned = swapped(a.bound.shape, b.bound.shape)
    if turned is not None:
        fix = (
            f"{b.name} is laid out the other way round: {b.name}.transpose{turned} fits, or make "
            "it so where it is made."
        )
    place = len(a.bound.shape) + axis
    same = len(a.bound.shape) == len(b.bound.shape) and bool(a.bound.node and b.bound.node)
    if same and place > 1 and feature_maps(a.bound.shape, b.bound.shape, place):
        fix = HALVED
    return Clash(
        f"{a.name} ({written(a.bound.shape)}) and {b.name} ({written(b.bound.shape)}) "
        f"do not fit in {call.expression.text}",
        f"the same size along axis {axis}, or 1",
        f"{left} in {a.name}, {right} in {b.name}",
        fix,
        (right, left),
    )
