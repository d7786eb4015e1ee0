"""A value with one axis fewer than the operation wants

## What it sees
The record of a crash: a layer of torch that was given a value with fewer axes than it takes, an
image layer that read a batch of images without channels as one image, an axis that was asked for
(dim=1, x[:, 0]) and that the value does not have, a value without any axis beside one of a single
row, or among others that are joined, where the line that made it squeezes. Fires on the step of the
crash.

## Why it matters
The script ends here, often only in the last batch, or when a single sample is predicted.

## Looks like
RuntimeError: Expected 3D (unbatched) or 4D (batched) input, or IndexError: Dimension out of range.

## Example
    scores = model(x).squeeze()
    best = scores.argmax(dim=1)

## Use instead
    scores = model(x)
    best = scores.argmax(dim=1)

## Confirm it
Nothing is left to confirm: the axes that are there and the one that is asked for are in the record.

## False alarms
A value with more axes than a layer takes is not looked at, nor is a width that does not fit where
the number of axes does.

## References
squeeze() without an axis removes the batch axis of a batch of one as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Finding, Fix, Run, Size
from sawbones.stats.crash_shapes import dimensions, misfit, written
from sawbones.stats.crashes import (
    Given,
    Refusal,
    backward,
    crash,
    makers,
    refusal,
    since,
    tensors_of,
)
from sawbones.stats.failures import failure
from sawbones.stats.loss_calls import as_site
from sawbones.stats.lost_axes import LostAxis, lost_axis

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
_AXIS_WORDS = ("dim", "axis", "dim0", "dim1")
# Functions whose first plain number is an axis.
_BY_AXIS = (
    "argmax",
    "argmin",
    "cumsum",
    "flatten",
    "log_softmax",
    "max",
    "mean",
    "min",
    "prod",
    "size",
    "softmax",
    "std",
    "sum",
    "topk",
    "unbind",
    "var",
)
_DROPPING = ("squeeze", "squeeze_", "select", "__getitem__")


def check(run: Run) -> Iterator[Finding]:
    call = refusal(run)
    lost = lost_axis(run, call) if call is not None else None
    if call is not None and lost is not None:
        yield _squeezed(run, call, lost)
        return
    indexed = _index(run, call) if call is not None else None
    if call is None or not (call.tensors or indexed):
        raise NothingToJudge("no operation of torch refused a tensor")
    if backward(run) is not None:
        yield from _lost_before_the_loss(run, call)
        return
    found = _layer(call) or _axis(call) if call.tensors else None
    found = found or indexed
    if found is not None:
        given, wanted, what = found
        yield _missing(run, call, given, wanted, what)


def _squeezed(run: Run, call: Refusal, lost: LostAxis) -> Finding:
    return explained(
        run,
        lost.what,
        (*lost.sites, call.frame.site),
        Fix(
            "Name the axis that may go where the values are made: squeeze(-1) or squeeze(1), never "
            "squeeze() alone, which takes the axis of a batch of one as well."
        ),
        expected=lost.expected,
        got=lost.got,
        because=f"squeeze() takes every axis of size 1, {since(run)}",
        sizes=[Size(g.name, written(g.bound.shape)) for g in call.tensors[:3]],
        exactly=(0, 1),
    )


def _lost_before_the_loss(run: Run, call: Refusal) -> Iterator[Finding]:
    """A loss by class takes scores without a batch axis as one sample, and its backward pass
    refuses the label that has one: the last batch was a single row, and squeeze took its axis.
    """
    died = crash(run)
    batch = next(iter(tensors_of(died.batch)), None) if died.batch is not None else None
    if batch is None or batch.shape[:1] != (1,):
        return
    for op in reversed(died.recent):
        before, after = (_shape(op.get(key)) for key in ("inputs", "outputs"))
        lost = len(before) > 1 and before[0] == 1 and prod(before) == prod(after)
        site = as_site(op.get("site"))
        if lost and len(after) == 1 and after != (1,) and site is not None:
            yield explained(
                run,
                f"The batch of one loses its batch axis in {op.get('name')}",
                (site, call.frame.site),
                Fix(
                    "Name the axes that may go: flatten(1), or squeeze(-1) for each, never "
                    f"squeeze() alone (line {site.line})."
                ),
                expected=f"the batch axis to stay: 1 x {written(after)}",
                got=f"{written(before)} becomes {written(after)}",
                because=f"this batch has 1 row, {since(run)}",
                sizes=[Size("the batch", written(batch.shape)), Size("after it", written(after))],
                exactly=(len(after), 2),
            )
            return


def _shape(values: object) -> tuple[int, ...]:
    rows = values if isinstance(values, (list, tuple)) else ()
    shape = rows[0].get("shape") if rows and isinstance(rows[0], Mapping) else None
    return tuple(int(size) for size in shape or ())


def _layer(call: Refusal) -> tuple[Given, int, str] | None:
    module, given = call.module, call.tensors[0]
    accepted = dimensions(module) if module is not None else ()
    if module is None or not accepted:
        return None
    count = len(given.bound.shape)
    if count in range(1, min(accepted)):
        return given, min(accepted), f"{call.layer} takes {_axes(accepted)}"
    reads_as_one = "in_channels" in module.settings and count == accepted[0] - 1
    if reads_as_one and misfit(module, given.bound.shape) is not None:
        return given, accepted[0], f"{call.layer} takes {accepted[0]} axes, channels second"
    return None


def _axes(accepted: tuple[int, ...]) -> str:
    return f"{' or '.join(map(str, sorted(accepted)))} axes"


def _axis(call: Refusal) -> tuple[Given, int, str] | None:
    """The axis that was asked for is the first one that is not there."""
    given = call.tensors[0]
    count = len(given.bound.shape)
    asked = [g.bound for g in call.given if g.name in _AXIS_WORDS and _whole(g.bound)]
    plain = [o.bound for o in call.expression.operands[1:] if o.bound and _whole(o.bound)]
    if not asked and call.name in _BY_AXIS:
        asked = plain[:1]
    for bound in asked:
        axis = int(bound.value or 0)
        if axis == count or axis == -count - 1:
            return given, count + 1, f"{call.name} is asked for axis {axis}"
    return None


def _whole(bound: Bound) -> bool:
    return bound.kind == "number" and bound.cls == "int" and bound.value is not None


def _index(run: Run, call: Refusal) -> tuple[Given, int, str] | None:
    """x[:, 0] of a value with one axis."""
    operands = call.expression.operands
    if call.expression.kind != "subscript" or not operands:
        return None
    bound = operands[0].bound or _indexed(run)
    if bound is None or bound.kind != "tensor":
        return None
    asked = len(operands) - 1
    if asked != len(bound.shape) + 1:
        return None
    return Given(operands[0].text, bound), asked, f"{asked} indices are given"


def _indexed(run: Run) -> Bound | None:
    """What no name holds, such as layer(x)[:, 0], is known from the trace of the failing step."""
    failed = failure(run)
    if failed is None or failed.op != "__getitem__" or not failed.shapes:
        return None
    return Bound("tensor", "Tensor", shape=tuple(failed.shapes[0]))


def _counted(axes: int) -> str:
    return f"{axes} axis" if axes == 1 else f"{axes} axes"


def _asking(call: Refusal) -> str:
    return "its indices need" if call.expression.kind == "subscript" else f"{call.layer} takes"


def _missing(run: Run, call: Refusal, given: Given, wanted: int, what: str) -> Finding:
    shape = given.bound.shape
    lines = makers(run, given.name)
    dropped = next((a for a in lines if set(a.calls) & set(_DROPPING)), None)
    made = dropped or next(iter(lines), None)
    because = ""
    if made is not None:
        because = f"{given.name} comes from {made.text} (line {made.site.line})"
        if run.num_steps:
            because += f", {since(run)}"
    named = given.name if given.name.isidentifier() else "x"
    if dropped is not None:
        advice = (
            "Name the axis that may go (squeeze(-1), never squeeze() alone), or keep it: "
            f"line {dropped.site.line}."
        )
    elif call.module is not None and "in_channels" in call.module.settings:
        axis = 1 if call.module.settings["in_channels"] == 1 and len(shape) == wanted - 1 else 0
        advice = f"Give it the axis: {named}.unsqueeze({axis}) before {call.layer}."
    else:
        advice = f"Give it the axis: {named}.unsqueeze(0) for a single sample."
    call_site = call.frame.site
    where = (made.site, call_site) if made is not None and dropped is not None else (call_site,)
    return explained(
        run,
        f"{given.name} has {_counted(len(shape))} where {_asking(call)} {wanted}",
        (*where, made.site if made is not None else None),
        Fix(advice),
        expected=f"{wanted} axes ({what})",
        got=f"{len(shape)} ({given.name} is {written(shape)})",
        because=because,
        sizes=[Size(g.name, written(g.bound.shape)) for g in call.tensors[:3]],
        exactly=(len(shape), wanted),
    )
