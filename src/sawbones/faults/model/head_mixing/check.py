"""A view or reshape that is used where dimensions have to change places

## What it sees
On deep steps, every reshape of values that carry gradients. Read in memory order, a dimension of
the input must stay whole or be split on its own. Fires when a dimension other than the last is cut
across by the new shape and turns up with the same size in another place: (heads, time, width)
reshaped to (time, heads * width), or (channels, time) to (time, channels); and when two
neighbouring blocks of dimensions stand the other way round: a feature map (channels, height, width)
viewed as (height * width, channels). From step 0. Pictures that the model is given are judged by
their values: when, read with 3 or 4 colours as the last axis, steps from pixel to pixel are at most
0.85 of their size along both axes on all deep steps, (height, width, colours) was reshaped to
(colours, height, width) somewhere before.

## Why it matters
The shapes are right and the contents are shuffled: what is called position t holds parts of many
positions, heads or examples.

## Looks like
No error, a loss that falls a little and stops; a causal model that sees the future, examples that
see each other.

## Example
    context = (weights @ v).reshape(batch, time, heads * width)

## Use instead
    context = (weights @ v).transpose(1, 2).reshape(batch, time, heads * width)

## Confirm it
The two shapes are the proof: no order of memory turns one into the other without mixing.

## False alarms
Splitting features into heads, merging batch and time, patches and windows, chunks of a long
sequence and the (time, batch * heads, width) form of multi-head attention keep every dimension
whole or split it on its own. When two dimensions have the same size the shapes do not tell, and the
check stays silent. Noise is as rough one way as the other, and pictures whose axes are right are
rougher when read the other way.

## References
"view is not transpose": the hidden state of a bidirectional LSTM reshaped to (batch, 2 * hidden) is
the best known case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.evidence import NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Finding, Fix, Op, Run, Value
from sawbones.trace.feeding import feeding_sites
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import made_at

NEEDS = ("ops",)
USES = ("made_tensors", "batches")
EXPLAINS = (
    "model.causal-leak",
    "model.cross-sample-leak",
    "model.position-missing",
    "optimizer.lr-too-low",
    "data.labels-misaligned",
    "model.over-masking",
    "loss.label-shift",
)
EXPERIMENT = None
RESHAPING = frozenset({"view", "reshape", "flatten", "unflatten", "reshape_as", "view_as"})


def check(run: Run) -> Iterator[Finding]:
    looked = False
    for deep in run.deep[:3]:
        graph = StepGraph(deep)
        for op in graph.ops:
            given = op.name in RESHAPING and op.inputs and op.outputs
            if not given or not op.outputs[0].requires_grad:
                continue
            looked = True
            before, after = _form(graph, op), op.outputs[0].shape
            moved = displaced(before, after)
            if moved is None:
                continue
            yield finding(
                "A reshape shuffles dimensions that should change places",
                locate(op),
                (
                    exact(
                        f"{op.name} makes {after} of {before}: dimension {moved[0]} (size "
                        f"{before[moved[0]]}) is cut across and seems to be meant as dimension "
                        f"{moved[1]}",
                        1,  # dimension that is cut across
                        signal="ops",
                        steps=(deep.step,),
                    ),
                ),
                Fix("Move the dimension with transpose or permute first, then reshape."),
            )
            return
    pictures = [(d.step, d.probes["pictures"]) for d in run.deep if d.probes.get("pictures")]
    if not looked and not pictures:
        raise NothingToJudge("the model reshapes nothing and is given no pictures")
    yield from _scrambled(run, pictures)


def _scrambled(run: Run, pictures: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Pictures that are smooth only when their colours are read as the last axis."""
    left = [max(seen["across"], seen["down"]) for _, seen in pictures]
    if not left or not all(map(limits.STEPS_LEFT.kept_by, left)):
        return
    shape = tuple(pictures[0][1]["shape"])
    turned = (shape[0], *shape[2:], shape[1])
    made = made_at(run, ("reshape", "view", "float", "to", "tensor", "as_tensor", "stack"))
    yield finding(
        "Pictures are reshaped where their axes should change places",
        locate(*made[:1], *feeding_sites(run)),
        (
            compared(
                f"the model gets {shape}; read as {turned} in memory order, steps from pixel to "
                f"pixel shrink to {max(left):.2f} of their size along both axes, on "
                f"{len(left)} deep steps",
                max(left),
                limits.STEPS_LEFT,
                below=True,
                expected=1,
                signal="ops",
                steps=[step for step, _ in pictures],
            ),
        ),
        Fix("Use permute(0, 3, 1, 2) (or moveaxis) instead of reshape or view."),
    )


def _form(graph: StepGraph, op: Op) -> tuple[int, ...]:
    """The shape before this and the merges right before it; where a dimension was split, its parts
    got names of their own.
    """
    *_, (value, _) = graph.way(op.inputs[0], op.index, RESHAPING | {"contiguous"}, _merged)
    return value.shape


def _merged(op: Op) -> Value | None:
    given = next(iter(op.inputs), None)
    split = given is not None and _splits(given.shape, op.outputs[0].shape)
    return None if split else given


def _splits(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    spans = _spans(after).values()
    return any(
        _shared(one, other) == other != one for one in _spans(before).values() for other in spans
    )


def displaced(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, int] | None:
    """(dimension of the input, dimension of the output) of a dimension that was cut across and
    stands elsewhere again.
    """
    old, new = _spans(before), _spans(after)
    if not any(_crosses(one, other) for one in old.values() for other in new.values()):
        return None
    swapped = _swapped(before, after)
    if swapped is not None:
        return swapped
    for place, span in old.items():
        crossed = any(_crosses(span, other) for other in new.values())
        if not crossed or place == len(before) - 1:
            continue
        for other, its_span in new.items():
            if after[other] == before[place] and its_span not in old.values():
                return place, other
    return None


def _swapped(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, int] | None:
    """Two blocks of dimensions side by side that the new shape names in the other order, whole or
    merged, all else as it was.
    """
    old, new = list(_spans(before)), list(_spans(after))
    sizes, wanted = [before[i] for i in old], [after[i] for i in new]
    for start in range(len(sizes) - 1):
        for middle in range(start + 1, len(sizes)):
            for end in range(middle + 1, len(sizes) + 1):
                one, two = sizes[start:middle], sizes[middle:end]
                if math.prod(one) == math.prod(two):
                    continue  # the shapes would be the same either way
                forms = ([*a, *b] for a in (two, [math.prod(two)]) for b in (one, [math.prod(one)]))
                if any(sizes[:start] + form + sizes[end:] == wanted != sizes for form in forms):
                    found = wanted.index(one[0], start) if one[0] in wanted[start:] else start
                    return old[start], new[found]
    return None


def _spans(shape: tuple[int, ...]) -> dict[int, tuple[int, int]]:
    """What every dimension covers in memory order, as products of sizes up to its begin and its
    end.
    """
    spans, total = {}, 1
    for place, size in enumerate(shape):
        if size > 1:
            spans[place] = (total, total * size)
            total *= size
    return spans


def _shared(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def _crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """They share something, and neither holds the other."""
    shared = _shared(one, other)
    return len(range(*shared)) > 0 and shared not in (one, other)
