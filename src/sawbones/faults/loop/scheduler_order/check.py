"""scheduler.step() before optimizer.step(), or on every micro-batch

## What it sees
Events of each scheduler against the steps of its optimizer. Early: the scheduler has moved before
the first optimizer step and then moves once per step (or once per epoch), so the first LR is never
used. Per micro-batch: the same scheduler moves once per backward pass although several of them make
one step. Two steps are enough.

## Why it matters
The first LR (often the start of the warm-up) is skipped; or the schedule runs as many times too
fast as there are micro-batches and is over long before training is.

## Looks like
torch warns "Detected call of lr_scheduler.step() before optimizer.step()"; the LR is near zero for
most of the run.

## Example
    loss.backward()
    scheduler.step()
    optimizer.step()

## Use instead
    loss.backward()
    optimizer.step()
    scheduler.step()

## Confirm it
The order and number of events are the proof.

## False alarms
A schedule that is wound forward on resume moves many times before the first step and in step
afterwards. Several schedulers are counted one by one. A scheduler that moves although the scaler
skipped the step is everybody's code and does no harm worth naming.

## References
PyTorch 1.1 changed the order and has warned about the old one ever since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Finding, Fix, Run
from sawbones.stats.protocol import Turn, turns
from sawbones.trace.locate import locate

NEEDS = ("schedule", "steps")
USES = ("events_in_full",)
EXPLAINS = ("optimizer.schedule", "optimizer.lr-too-low")
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    # Moves of the schedule are recorded longer than the steps they belong to: beyond that they
    # cannot be counted against them.
    whole = [t for t in turns(run) if t.step < run.events_in_full]
    moves = [
        e
        for e in run.of_kind("schedule")
        if not e.data.get("initial") and e.step < run.events_in_full
    ]
    if len(whole) < 2 or len(moves) < 2:
        raise NothingToJudge("fewer than two optimizer steps, or two moves of a schedule")
    for scheduler in sorted({e.data.get("scheduler") for e in moves}, key=str):
        mine = [e for e in moves if e.data.get("scheduler") == scheduler]
        found = _per_micro_batch(whole, mine) or _early(whole, mine)
        if found is not None:
            yield found
            return


def _per_micro_batch(whole: list[Turn], mine: list[Event]) -> Finding | None:
    moves = Counter(event.step for event in mine)
    several = [t for t in whole if len(t.backwards) > 1 and not t.closure]
    if len(several) < 2:
        return None
    # The move after the step belongs to the next number: of N moves per step, N-1 or N carry this
    # step's.
    fast = [t for t in several if moves[t.step] >= len(t.backwards) - 1]
    micro = int(np.median([len(t.backwards) for t in several]))
    shares = len(fast) / len(several), len(mine) / (micro * len(several))
    if not all(map(limits.STEPS_OUT_OF_ORDER.reached_by, shares)):
        return None
    return finding(
        f"The scheduler moves on every micro-batch: {micro} times per optimizer step",
        locate(mine[0]),
        (
            exact(
                f"{len(mine)} scheduler steps for {len(whole)} optimizer steps",
                len(mine) / len(whole),
                expected=1,
                signal="schedule",
                steps=[t.step for t in fast[:5]],
            ),
        ),
        Fix("Call scheduler.step() right after optimizer.step(), under the same condition."),
    )


def _early(whole: list[Turn], mine: list[Event]) -> Finding | None:
    first = whole[0].taken
    before = [e for e in mine if e.seq < first.seq]
    later = {e.site for e in mine if e.seq > first.seq}
    if not before or len(before) > max(1, len(whole[0].backwards)) or before[0].site not in later:
        return None  # wound forward on resume, or moved once on purpose by a line of its own
    between = [t for t in whole if any(_inside(t, e) for e in mine)]
    ahead = limits.SCHEDULE_MOVES.reached_by(
        len(mine) / len(whole)
    ) or limits.STEPS_OUT_OF_ORDER.reached_by(len(between) / len(whole))
    place = before[0]
    was, became = ((place.data.get(key) or [float("nan")])[0] for key in ("lr_before", "lr_after"))
    return finding(
        "The scheduler moves before the optimizer's first step: the first learning rate "
        "is never used",
        locate(place),
        (
            exact(
                f"scheduler.step() before the first optimizer.step(); LR {was:g} "
                f"became {became:g} unused",
                len(before),
                signal="schedule",
                steps=(0,),
            ),
        ),
        Fix("Call scheduler.step() after optimizer.step()."),
        # Once per epoch at the epoch's beginning: the first LR is skipped all the same.
        at_most="proven" if ahead else "likely",
    )


def _inside(turn: Turn, event: Event) -> bool:
    """Between a backward pass and the step that uses it."""
    return bool(turn.backwards) and turn.backwards[0].seq < event.seq < turn.taken.seq
