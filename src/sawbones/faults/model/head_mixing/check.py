"""A view or reshape that is used where dimensions have to change places

## What it sees
On deep steps, every reshape of values that carry gradients. Read in memory order, a dimension of
the input must stay whole or be split on its own. Fires when a dimension other than the last is cut
across by the new shape and turns up with the same size in another place: (heads, time, width)
reshaped to (time, heads * width), or (channels, time) to (time, channels); and when two
neighbouring blocks of dimensions stand the other way round: a feature map (channels, height, width)
viewed as (height * width, channels). From step 0.

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
check stays silent.

## References
"view is not transpose": the hidden state of a bidirectional LSTM reshaped to (batch, 2 * hidden) is
the best known case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Op, Run
from sawbones.stats.dataflow import Flow
from sawbones.stats.loss_calls import places

NEEDS = ("ops",)
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
_RESHAPING = frozenset({"view", "reshape", "flatten", "unflatten", "reshape_as", "view_as"})


def check(run: Run) -> Iterator[Finding]:
    for deep in run.deep[:3]:
        flow = Flow(deep)
        for op in flow.ops:
            if (
                op.name not in _RESHAPING
                or not op.inputs
                or not op.outputs
                or not op.outputs[0].requires_grad
            ):
                continue
            before = _form(flow, op)
            moved = displaced(before, op.outputs[0].shape)
            if moved is None:
                continue
            text = (
                f"{op.name} makes {op.outputs[0].shape} of {before}: dimension {moved[0]} (size {before[moved[0]]}) is cut across "
                f"and seems to be meant as dimension {moved[1]}"
            )
            yield Finding(
                "model.head-mixing",
                "proven",
                0.95,
                "A reshape shuffles dimensions that should change places",
                places(op.site),
                (Evidence(text, "ops", (deep.step,)),),
                Fix("Move the dimension with transpose or permute first, then reshape."),
            )
            return


def _form(flow: Flow, op: Op) -> tuple[int, ...]:
    """The shape before this and the merges right before it; where a dimension was split, its parts
    got names of their own.
    """
    value, before = op.inputs[0], op.index
    for _ in range(4):
        made = flow.maker(value, before)
        if (
            made is None
            or made.name not in (*_RESHAPING, "contiguous")
            or not made.inputs
            or _splits(made.inputs[0].shape, value.shape)
        ):
            break
        value, before = made.inputs[0], made.index
    return value.shape


def _splits(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    old, new = _spans(before), _spans(after)
    return any(
        a <= c and d <= b and (a, b) != (c, d)
        for a, b, _ in old.values()
        for c, d, _ in new.values()
    )


def displaced(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, int] | None:
    """(dimension of the input, dimension of the output) of a dimension that was cut across and
    stands elsewhere again.
    """
    old, new = _spans(before), _spans(after)
    if not old or not new:
        return None
    if not any(_crosses(one[:2], other[:2]) for one in old.values() for other in new.values()):
        return None
    swapped = _swapped(before, after)
    if swapped is not None:
        return swapped
    for place, (start, end, size) in old.items():
        if place == len(before) - 1:
            continue
        if not any(_crosses((start, end), (a, b)) for a, b, _ in new.values()):
            continue
        for other, (a, b, length) in new.items():
            if (
                length == size
                and (a, b) != (start, end)
                and (a, b) not in [(s, e) for s, e, _ in old.values()]
            ):
                return place, other
    return None


def _swapped(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, int] | None:
    """Two blocks of dimensions side by side that the new shape names in the other order, whole or
    merged, all else as it was.
    """
    old, new = (
        [(i, n) for i, n in enumerate(before) if n > 1],
        [(i, n) for i, n in enumerate(after) if n > 1],
    )
    sizes, wanted = [n for _, n in old], [n for _, n in new]
    for start in range(len(sizes) - 1):
        for middle in range(start + 1, len(sizes)):
            for end in range(middle + 1, len(sizes) + 1):
                one, two = sizes[start:middle], sizes[middle:end]
                if math.prod(one) == math.prod(two):
                    continue  # the shapes would be the same either way
                forms = ([*a, *b] for a in (two, [math.prod(two)]) for b in (one, [math.prod(one)]))
                if any(sizes[:start] + form + sizes[end:] == wanted != sizes for form in forms):
                    return old[start][0], new[
                        wanted.index(one[0], start) if one[0] in wanted[start:] else start
                    ][0]
    return None


def _spans(shape: tuple[int, ...]) -> dict[int, tuple[int, int, int]]:
    """What every dimension covers in memory order, as products of sizes up to its begin and its
    end.
    """
    spans, total = {}, 1
    for place, size in enumerate(shape):
        if size > 1:
            spans[place] = (total, total * size, size)
            total *= size
    return spans


def _crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """They share something, and neither holds the other."""
    (a, b), (c, d) = one, other
    if b <= c or d <= a:
        return False
    return not (a <= c and d <= b) and not (c <= a and b <= d)
