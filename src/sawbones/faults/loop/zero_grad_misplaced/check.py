"""Gradients cleared between backward and step, or on every micro-batch of an accumulation

## What it sees
The order of events in every step. Cleared too late: zero_grad of the stepping optimizer (or of the
model) after the last backward, and the step then finds no gradient or zeros. Cleared too often:
several backward passes from one line lead to one step, and gradients are cleared before each of
them, or before the last one only, so that the step gets a part of them. Cleared between two losses: parameters that got a
gradient since the last step have lost it at this one and got no other, because zero_grad came
between the backward that reached them and the step. At least 80 % of the steps, from step 1.

## Why it matters
In the first case nothing is learnt at all; in the second most of the work is thrown away.

## Looks like
The loss stays where it began; or accumulation trains as noisily as the small batch.

## Example
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()

## Use instead
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

## Confirm it
The events and the gradients at the step are the proof: none, or those of a few micro-batches.

## False alarms
LBFGS and other closures clear before each evaluation. Adversarial training clears between the
attack's backward and the real one: those stand on different lines, and both passes reach the same
parameters. So do the two passes of sharpness-aware minimisation; gradient surgery puts its own
gradients in place before the step. What is left over at the end of an epoch and cleared there is
the matter of loop.accumulation-remainder. Clearing another optimizer's gradients between this one's
backward and step is what GANs do.

## References
A frequent answer in PyTorch's forum; the order zero_grad, backward, step is the first thing its
tutorials teach.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Finding, Fix, Run
from sawbones.stats.accumulating import epoch_borders, last_clear, num_thrown, own_clears
from sawbones.stats.protocol import Turn, measured, same_place, turns
from sawbones.trace.locate import locate

NEEDS = ("backward", "steps")
USES = ("batches",)
EXPLAINS = (
    "optimizer.lr-too-low",
    "model.frozen-params",
    "model.detached-graph",
    "model.vanishing-gradients",
    "loop.no-step",
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "loop.accumulation-unscaled",
    "loop.no-zero-grad",
)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    whole = [t for t in turns(run) if t.backwards and not t.closure and t.taken.kind == "step"]
    if len(whole) < 2:
        raise NothingToJudge("no optimizer stepped twice after a backward pass")
    too_late = _before_the_step(run, whole)
    if too_late is not None:
        yield too_late
        return
    yield from _between_two_losses(run, whole)
    yield from _before_every_micro_batch(run, whole)


def _before_the_step(run: Run, whole: list[Turn]) -> Finding | None:
    late = [(t, z) for t in whole if (z := _cleared_after(t)) is not None and _nothing_left(run, t)]
    if not limits.STEPS_OUT_OF_ORDER.reached_by(len(late) / len(whole)):
        return None
    turn, clear = late[0]
    return finding(
        "Gradients are cleared between backward() and step(): the optimizer has nothing to apply",
        locate(clear, turn.backwards[-1]),
        (
            exact(
                "zero_grad comes after the last backward and before the step at "
                f"{len(late)} of {len(whole)} steps, "
                "and every gradient is gone at the step",
                len(late),
                signal="events",
                steps=[t.step for t, _ in late[:5]],
            ),
        ),
        Fix("Move zero_grad() before backward(), or after step()."),
    )


def _before_every_micro_batch(run: Run, whole: list[Turn]) -> Iterator[Finding]:
    several = [t for t in whole if len(t.backwards) > 1]
    border = epoch_borders(run)
    # One clear at the end of an epoch is a remainder that is dropped.
    often = [
        t
        for t in several
        if _are_micro_batches(t) and len(_followed_by_a_clear(t)) > int(t.step in border)
    ]
    if len(several) < 2 or 2 * len(several) < len(whole):
        return
    if not limits.STEPS_OUT_OF_ORDER.reached_by(len(often) / len(several)):
        return
    turn = often[0]
    count = int(np.median([len(t.backwards) for t in often]))
    thrown = int(np.median([num_thrown(t) for t in often]))
    kept = "the last counts" if count - thrown == 1 else f"the last {count - thrown} count"
    yield finding(
        f"Gradients are cleared between micro-batches: of {count} accumulated backward passes "
        f"only {kept}",
        locate(last_clear(turn), turn.backwards[-1]),
        (
            exact(
                f"{count} backward passes per step, and zero_grad after {thrown} of them at "
                f"{len(often)} of {len(several)} steps",
                thrown,
                signal="events",
                steps=[t.step for t in often[:5]],
            ),
        ),
        Fix("Clear gradients once per optimizer step, right after it, not once per micro-batch."),
    )


def _between_two_losses(run: Run, whole: list[Turn]) -> Iterator[Finding]:
    """Of several losses, each with a backward of its own, the first is cleared away: what only it
    reaches never learns.
    """
    lost = [
        (t, z) for t in whole if t.taken.data.get("lost") and (z := _cleared_between(t)) is not None
    ]
    if len(lost) < 2 or not limits.STEPS_OUT_OF_ORDER.reached_by(len(lost) / len(whole)):
        return
    turn, clear = lost[0]
    count = int(turn.taken.data["lost"])
    held = sum(t.optimizer == turn.optimizer for t in run.tensors)
    yield finding(
        f"Gradients are cleared between two backward passes: {count} parameters lose the "
        "only gradient they get",
        locate(clear, turn.backwards[0]),
        (
            exact(
                f"zero_grad between backward passes at {len(lost)} of {len(whole)} steps; "
                f"{count} of {held} parameters had a "
                "gradient before it and have none at the step",
                count,
                signal="events",
                steps=[t.step for t, _ in lost[:5]],
            ),
        ),
        Fix("Clear gradients once per step, before the first backward(); the losses then add up."),
    )


def _cleared_between(turn: Turn) -> Event | None:
    first, last = turn.backwards[0].seq, turn.backwards[-1].seq
    return next((z for z in own_clears(turn) if first < z.seq < last), None)


def _cleared_after(turn: Turn) -> Event | None:
    last = turn.backwards[-1].seq
    return next((z for z in own_clears(turn) if z.seq > last), None)


def _nothing_left(run: Run, turn: Turn) -> bool:
    norms = measured(run, "grad_l2", turn.step)
    mine = np.array([t.optimizer == turn.optimizer for t in run.tensors])[: len(norms)]
    values = norms[: len(mine)][mine]
    known = values[~np.isnan(values)]
    if len(known):
        return not np.any(known > 0)
    rows = np.flatnonzero(run.steps["step"] == turn.step)
    return bool(len(rows)) and not np.isfinite(run.steps["grad_norm"][rows[0]])


def _followed_by_a_clear(turn: Turn) -> list[Event]:
    """Backward passes after which gradients are cleared, though another one comes before the
    step.
    """
    clears = [z.seq for z in own_clears(turn)]
    return [a for a, b in pairwise(turn.backwards) if any(a.seq < seq < b.seq for seq in clears)]


def _are_micro_batches(turn: Turn) -> bool:
    """One line goes backward, each time after another call of the model on new data: an attack or
    a second loss on one batch is another matter.
    """
    backwards = turn.backwards
    forwards = [
        f.seq for f in turn.of("forward", "batch") if f.phase == "train" or f.kind == "batch"
    ]
    return same_place(backwards) and all(
        any(a.seq < seq < b.seq for seq in forwards) for a, b in pairwise(backwards)
    )
