"""Training with the model left in evaluation mode

## What it sees
The mode of the model in forward passes that take gradients and lead to a step. Left behind: early
steps ran in training mode, then an evaluation came, and from there on the steps run in evaluation
mode. Again and again: the same training line runs in training mode, and after an evaluation in
evaluation mode until the next epoch. From the start: no step ever ran in training mode. Only where
it matters: the model has dropout above 0 or batch normalisation that tracks statistics.

## Why it matters
Dropout no longer regularises and batch normalisation keeps using statistics that no step updates.

## Looks like
The training curve changes after the first validation; the model overfits although it has dropout.

## Example
    for epoch in range(10):
        train_one_epoch(model)
        model.eval()
        validate(model)

## Use instead
    for epoch in range(10):
        model.train()
        train_one_epoch(model)
        model.eval()
        validate(model)

## Confirm it
The mode at the forward passes of the steps is the proof.

## False alarms
Fine-tuning with frozen statistics keeps a part in evaluation mode, not the model that is called;
where parts are frozen, or normalisation or dropout layers are in training mode on their own, it is
mentioned at most. Teachers take no step. A new head on a body that is trained no more is silent:
its steps change nothing that was trained before.

## References
`from_pretrained` returns models in evaluation mode; Lightning restores the mode after validation
for this reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Finding, Fix, Module, Run
from sawbones.stats.protocol import Turn, measured, turns
from sawbones.trace.locate import locate

NEEDS = ("backward", "steps", "modules")
EXPLAINS = ("evaluation.overfitting", "model.batchnorm-small-batch")
EXPERIMENT = None
MIN_STEPS = 3  # one or two in evaluation mode are a trial of something


def check(run: Run) -> Iterator[Finding]:
    caring = [m for m in run.modules if _cares(m)]
    whole = [t for t in turns(run) if t.backwards and _modes(t)]
    if not caring or len(whole) < MIN_STEPS:
        raise NothingToJudge("no layer that depends on the mode was trained for three steps")
    frozen = [not any(_modes(t)) for t in whole]
    if sum(frozen) < MIN_STEPS:
        return
    again = _again(whole, frozen)
    if again is None and not all(frozen[-MIN_STEPS:]):
        return
    if _another_part(run, whole, frozen):
        return
    begin = next(i for i in range(len(frozen)) if all(frozen[i:])) if again is None else again
    num_frozen = sum(frozen[begin:])
    if not limits.EVALUATION_MODE_STEPS.reached_by(num_frozen / len(frozen)):
        return
    # A part that is in training mode, or frozen: it may be meant.
    partly = any(m.settings.get("training") for m in caring) or any(
        t.in_model and not t.requires_grad for t in run.tensors
    )
    left_behind = begin > 0
    turn = whole[begin]
    forward = _taking(turn)
    modes = [
        e for e in run.of_kind("mode") if e.data.get("training") is False and e.seq < forward.seq
    ]
    since = "after an evaluation" if left_behind else "from the first step"
    names = ", ".join(sorted({m.cls for m in caring})[:3])
    yield finding(
        f"Training in evaluation mode {since}: {names} inactive or frozen",
        locate(*([forward, *modes[-1:]] if left_behind else [*modes[-1:], forward])),
        (
            exact(
                f"{num_frozen} of {len(frozen)} steps took gradients in "
                f"evaluation mode, from step {turn.step} on",
                num_frozen,
                signal="events",
                steps=(turn.step,),
            ),
            context(
                f"the mode matters to {len(caring)} layers ({names})",
                signal="modules",
                value=len(caring),
                expected=0,
            ),
        ),
        Fix("Call model.train() at the beginning of every training epoch, after any evaluation."),
        at_most="suspected" if partly else "proven" if left_behind else "likely",
    )


def _again(whole: list[Turn], frozen: list[bool]) -> int | None:
    """Where the first of several stretches in evaluation mode begins, if evaluations alone begin
    them.

    The line that takes gradients must be one that also runs in training mode: a phase of its own
    may be meant as it is.
    """
    begins = [i for i in range(1, len(frozen)) if frozen[i] and not frozen[i - 1]]
    if frozen[0] or len(begins) < 2 or not all(_evaluated(whole[i]) for i in begins):
        return None
    trained = {_taking(t).site for t, still in zip(whole, frozen, strict=True) if not still}
    return begins[0] if all(_taking(whole[i]).site in trained for i in begins) else None


def _another_part(run: Run, whole: list[Turn], frozen: list[bool]) -> bool:
    """Steps in evaluation mode change nothing that a step in training mode changed: a new head is
    fitted to a body that stays as it is.
    """
    changed: tuple[set[int], set[int]] = set(), set()
    for turn, still in zip(whole, frozen, strict=True):
        changed[still].update(np.flatnonzero(measured(run, "grad_l2", turn.step) > 0).tolist())
    return all(changed) and changed[0].isdisjoint(changed[1])


def _evaluated(turn: Turn) -> bool:
    """Whether a model that is called for this step was evaluated before: without gradients, in
    evaluation mode.
    """
    taking = _taking(turn)
    before = (
        e
        for e in turn.of("forward")
        if e.seq < taking.seq and e.data.get("module") == taking.data.get("module")
    )
    return any(not e.data.get("grad") and e.data.get("training") is False for e in before)


def _taking(turn: Turn) -> Event:
    return next(e for e in turn.of("forward") if e.data.get("grad"))


def _cares(module: Module) -> bool:
    settings = module.settings
    if "num_features" in settings:
        return settings.get("track_running_stats") is True
    rate = settings.get("p")
    return module.num_params == 0 and isinstance(rate, (int, float)) and 0 < rate < 1


def _modes(turn: Turn) -> list[bool]:
    last = turn.backwards[-1].seq
    forwards = [e for e in turn.of("forward") if e.data.get("grad") and e.seq < last]
    return [bool(e.data.get("training")) for e in forwards]
