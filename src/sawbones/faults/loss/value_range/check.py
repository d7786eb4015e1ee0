"""Values outside of what a loss or a distribution is defined for

## What it sees
The record of a crash in a loss of probabilities or in a distribution: the smallest and largest
value that it was given, and whether all of them are finite. Fires on the step of the crash.

## Why it matters
The script ends here; on a GPU with an assertion that names no line.

## Looks like
RuntimeError: all elements of input should be between 0 and 1, or ValueError: Expected parameter
probs to satisfy the constraint Simplex().

## Example
    loss = nn.BCELoss()(nn.Linear(8, 1)(x), y)

## Use instead
    loss = nn.BCEWithLogitsLoss()(nn.Linear(8, 1)(x), y)

## Confirm it
Nothing is left to confirm: the range of the values is in the record.

## False alarms
Only a call that was refused is looked at, and only where the values really lie outside.

## References
A network that ends in a linear layer under BCELoss; a softmax over actions that are all masked.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Finding, Fix, Run, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crash_values import all_infinite, beyond
from sawbones.stats.crashes import (
    Given,
    Refusal,
    crash,
    inner_frame,
    library_frames,
    makers,
    refusal,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loss.wrong-loss", "data.label-out-of-range", "model.wrong-dtype")
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    call = refusal(run)
    drawn = [f for f in library_frames(crash(run)) if f.home.startswith("torch.distributions")]
    if drawn:
        yield from _distribution(run, drawn)
        return
    if call is None or call.name != "binary_cross_entropy":
        raise NothingToJudge("no loss of probabilities and no distribution was refused")
    yield from _probabilities(run, call)


def _probabilities(run: Run, call: Refusal) -> Iterator[Finding]:
    for number, given in enumerate(call.tensors[:2]):
        outside = beyond(given.bound, 0, 1)
        if outside:
            yield _outside(run, call, given, outside, of_scores=number == 0)
            return


def _outside(run: Run, call: Refusal, given: Given, outside: str, of_scores: bool) -> Finding:
    made = [a for a in makers(run, given.name) if a.text and a.how != "argument"]
    built = call.module.built.site if call.module is not None and call.module.built else None
    nonfinite = bool(given.bound.settings.get("nonfinite"))
    if nonfinite:
        fix = f"Find the first value of {given.name} that is not finite: it is NaN before the loss."
        because = "a value that is not a number lies in no range"
    elif of_scores:
        fix = (
            f"Give the scores as they are to nn.BCEWithLogitsLoss(), or end with a sigmoid: "
            f"torch.sigmoid({given.name})."
        )
        because = f"{given.name} holds scores, not probabilities: no sigmoid was applied to it"
    else:
        fix = (
            f"Bring {given.name} into [0, 1] where it is made: divide by its largest value, or "
            "make labels 0 and 1 of the classes."
        )
        because = f"{given.name} holds the targets, which are probabilities as well"
    if made:
        because += f"; it comes from {made[0].text} (line {made[0].site.line})"
    return explained(
        run,
        f"{call.layer} takes values in [0, 1] and is given {outside}",
        (*(a.site for a in made[:2]), built, call.frame.site)
        if of_scores
        else (*(a.site for a in made[:2]), call.frame.site),
        Fix(fix),
        expected=f"{given.name} in [0, 1]",
        got=outside,
        because=because,
        sizes=[Size(g.name, written(g.bound.shape), g.bound.dtype) for g in call.tensors[:2]],
    )


def _distribution(run: Run, drawn: list[CrashFrame]) -> Iterator[Finding]:
    tensors = [
        (name, bound)
        for frame in reversed(drawn)
        for name, bound in frame.values.items()
        if bound.kind == "tensor" and bound.settings.get("nonfinite")
    ]
    if not tensors:
        return
    frame = inner_frame(crash(run))
    masked = _masked(frame)
    name, bound = tensors[-1]
    holder = drawn[0].values.get("self")
    kind = holder.cls if holder is not None else "The distribution"
    count = beyond(bound, 0, 1)
    lines = [a for a in frame.assignments if masked and a.name == masked[0]]
    because = "the values are NaN before they reach the distribution"
    fix = "Find the first value that is not finite on the way to it."
    if masked:
        because = (
            f"every value of {masked[0]} ({written(masked[1].shape)}) is infinite: all of them are "
            "masked, and the softmax of such a row is NaN"
        )
        fix = (
            f"Leave at least one entry of {masked[0]} free, or end the episode (skip the row) "
            "where the mask forbids all."
        )
    yield explained(
        run,
        f"{kind} is given {name} of which {count}",
        (*(a.site for a in lines[-1:]), frame.site),
        Fix(fix),
        expected=f"finite {name}",
        got=count,
        because=because,
        sizes=[Size(name, written(bound.shape), bound.node or bound.dtype)],
    )


def _masked(frame: CrashFrame) -> tuple[str, Bound] | None:
    """A value that the line depends on of which nothing is finite, nor NaN: -inf everywhere."""
    for assignment in reversed(frame.assignments):
        bound = frame.values.get(assignment.name)
        if bound is not None and bound.kind == "tensor" and all_infinite(bound):
            return assignment.name, bound
    return None
