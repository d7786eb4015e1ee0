"""A layer that is built for another width than it is given

## What it sees
The record of a crash in a layer of torch: the sizes that the layer declares (columns, channels,
features, kernel) and the shape that it was given. Fires when the number of axes fits and the width
does not, or when a kernel is larger than what is left of the image, on the step of the crash.

## Why it matters
The script ends here.

## Looks like
RuntimeError: mat1 and mat2 shapes cannot be multiplied, or expected input to have 3 channels, at
the first batch.

## Example
    conv = nn.Conv2d(1, 8, 3)  # 28 x 28 becomes 26 x 26
    fc = nn.Linear(8 * 28 * 28, 10)
    y = fc(conv(x).flatten(1))

## Use instead
    conv = nn.Conv2d(1, 8, 3)  # 28 x 28 becomes 26 x 26
    fc = nn.Linear(8 * 26 * 26, 10)
    y = fc(conv(x).flatten(1))

## Confirm it
Nothing is left to confirm: the size that is declared and the one that came are both in the record.

## False alarms
Only a layer that refused its input is looked at. Where an axis is missing altogether,
model.missing-batch-axis speaks; where two values meet outside of a layer, model.shape-mismatch.

## References
The first linear layer after a flatten, whose width depends on the size of the images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_origins import brought_in, built_with, sites, went_well_before
from sawbones.stats.crash_shapes import (
    Misfit,
    argument_names,
    dimensions,
    misfit,
    rewritten,
    too_small,
    written,
)
from sawbones.stats.crashes import Given, Refusal, makers, refusal

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
# Operations that change the width of what a linear layer gets next.
_FLATTENING = ("flatten", "view", "reshape", "cat", "concat", "stack", "mean", "permute")


def check(run: Run) -> Iterator[Finding]:
    call = refusal(run)
    if call is None or call.module is None or not call.tensors:
        raise NothingToJudge("no layer of torch refused its input")
    module = call.module
    for number, given in enumerate(call.tensors[:2]):
        shape = given.bound.shape
        accepted = dimensions(module)
        if accepted and len(shape) not in accepted:
            return
        found = misfit(module, shape, second=number == 1)
        if found is not None and not _lacks_an_axis(module, shape):
            yield _width(run, call, given, found)
            return
        small = too_small(module, shape)
        if small is not None:
            yield _small(run, call, given, small)
            return
        if "in1_features" not in module.settings:
            return


def _lacks_an_axis(module: Bound, shape: tuple[int, ...]) -> bool:
    """Read as one image without a batch axis, which it is not: its channels do not fit either."""
    accepted = dimensions(module)
    return "in_channels" in module.settings and len(shape) != accepted[0]


def _width(run: Run, call: Refusal, given: Given, found: Misfit) -> Finding:
    shape, module = given.bound.shape, call.module
    assert module is not None
    built = module.built
    expected = f"{found.expected} {found.unit}"
    got = f"{found.got} ({given.name} is {written(shape)})"
    because = _because(run, call, given, found)
    where: list[Site | None] = [built.site if built is not None else None]
    if built is not None:
        names = argument_names(built, found.setting)
        where += [a.site for a in built.assignments if a.name in names and a.how != "argument"]
        where = [*_number_given(run, names, found), *where]
    if went_well_before(run, module.path):
        # the layer took what it was given until now: the data of this call differ
        texts = [o.text for o in call.expression.operands]
        where = [*sites(brought_in(run, given.name, *texts)), *where]
    where.append(call.frame.site)
    if call.handed_on:
        where.append(_built_before(run, given))
    fix = _fix(call, given, found)
    if fix.replace is None and fix.summary.startswith("Before"):
        made = [a.site for a in makers(run, given.name) if a.text and a.how != "loop"]
        data = made[:1] if found.unit == "channels" else []
        where = [call.frame.site, *data, built.site if built is not None else None]
    return explained(
        run,
        f"{call.layer} expects {found.expected} {found.unit} and is given {found.got}",
        where,
        fix,
        expected=expected,
        got=got,
        because=because,
        sizes=_sizes(call, given, found),
        exactly=(found.got, found.expected),
    )


def _number_given(run: Run, names: Sequence[str], found: Misfit) -> list[Site]:
    """Where the size of the layer is written, if its constructor only hands it on."""
    return sites(*(built_with(run, name, found.expected) for name in names[:1]))


def _fix(call: Refusal, given: Given, found: Misfit) -> Fix:
    shape, module = given.bound.shape, call.module
    assert module is not None
    if found.unit == "columns" and len(shape) > 2 and prod(shape[1:]) == found.expected:
        if call.handed_on:
            return Fix(f"Put nn.Flatten() in front of {call.layer} in the nn.Sequential.")
        return Fix(
            f"Before {call.layer}, lay the axes of {given.name} out in one: "
            f"torch.flatten({given.name}, 1) has {found.expected} columns."
        )
    last = found.unit == "channels" and len(shape) > 2 and shape[-1] == found.expected
    if last and not call.handed_on:
        order = [0, len(shape) - 1]
        order += [axis for axis in range(1, len(shape)) if axis not in order]
        moved = ", ".join(map(str, order))
        return Fix(
            f"Before {call.layer}, bring the axis of size {found.expected} to the place of the "
            f"channels: {given.name}.permute({moved})."
        )
    if found.unit == "channels" and not call.handed_on and not given.bound.node:
        return _channels(call, given, found)
    change = rewritten(module.built, found.setting, found.got) if module.built else None
    if change is None or module.built is None:
        return Fix(f"Build {call.layer} with {found.setting}={found.got}.")
    old, new = change
    local = old in module.built.site.code
    return Fix(f"Build it for what it gets: {new}.", replace=change if local else None)


def _channels(call: Refusal, given: Given, found: Misfit) -> Fix:
    """The input itself has other channels than the first layer: either may be meant."""
    module = call.module
    assert module is not None
    change = rewritten(module.built, found.setting, found.got) if module.built else None
    new = change[1] if change is not None else f"{found.setting}={found.got}"
    local = change is not None and module.built is not None and change[0] in module.built.site.code
    return Fix(
        f"Build it for what it gets: {new}; or give it inputs of {found.expected} channels.",
        replace=change if local else None,
    )


def _because(run: Run, call: Refusal, given: Given, found: Misfit) -> str:
    before = _layer_before(run, given)
    if before:
        return before
    name = given.name
    lines = [a for a in makers(run, name) if a.site.line != call.frame.site.line]
    made = next((a for a in lines if set(a.calls) & set(_FLATTENING)), None)
    made = made or next((a for a in lines if a.text), None)
    return f"{name} comes from {made.text} (line {made.site.line})" if made is not None else ""


def _layer_before(run: Run, given: Given) -> str:
    """The last module of the forward pass whose output has just this shape."""
    row = _row_before(run, given)
    if row is None:
        return ""
    built = _built_before(run, given)
    at = f", built at line {built.line}" if built is not None else ""
    name = f"{row.get('class')} {row.get('path')}"
    return f"{name} in front of it gives {written(given.bound.shape)}{at}"


def _built_before(run: Run, given: Given) -> Site | None:
    row = _row_before(run, given)
    own = row.get("path") if row is not None else None
    return next((m.built for m in run.modules if own and m.path == own), None)


def _row_before(run: Run, given: Given) -> Mapping[str, Any] | None:
    shape = list(given.bound.shape)
    found: Mapping[str, Any] | None = None
    for row in run.ending.modules:
        outputs = row.get("outputs") or ()
        if outputs and list(outputs[0][1]) == shape and row.get("path"):
            found = row
    return found


def _sizes(call: Refusal, given: Given, found: Misfit) -> list[Size]:
    assert call.module is not None
    rows = [Size(g.name, written(g.bound.shape), g.bound.dtype) for g in call.tensors[:3]]
    built = call.module.built
    line = f"line {built.site.line}" if built is not None else ""
    return [*rows, Size(f"{call.layer}.{found.setting}", str(found.expected), line)]


def _small(run: Run, call: Refusal, given: Given, small: tuple[int, int]) -> Finding:
    kernel, size = small
    shape, module = given.bound.shape, call.module
    assert module is not None
    built = module.built.site if module.built is not None else None
    return explained(
        run,
        f"{call.layer} has a kernel of {kernel} and is given only {size}",
        (built, call.frame.site),
        Fix(
            "Use larger images, fewer halvings in front of this layer, or a smaller kernel "
            f"(at most {size})."
        ),
        expected=f"at least {kernel} values along each axis of the image",
        got=f"{size} ({given.name} is {written(shape)})",
        because=_layer_before(run, given),
        sizes=[Size(given.name, written(shape)), Size("kernel_size", str(kernel))],
    )
