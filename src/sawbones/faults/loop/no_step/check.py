"""optimizer.step() missing or never reached

## What it sees
Backward passes, an optimizer that was built, and not one step: neither of the optimizer nor by hand
(parameters that change in place count as a step). Fires after 3 backward passes of a run that was
not cut short by an error. Of several optimizers one is enough: likely when the loop clears its
gradients before backward passes, the others step, and it never did until the run's end.

Also a loop without any backward pass: the model was called with gradients on 10 times or more, an
optimizer was built, and either the loop clears or steps it, or losses of the same samples were
computed three times over. Steps count only where no gradient was ever there.

## Why it matters
Gradients are computed and nothing ever uses them.

## Looks like
The loss wanders around its first value for ever; the model is the same at the end as at the
beginning.

## Example
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step

## Use instead
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

## Confirm it
The events are the proof: so many backward passes, no step, no parameter changed.

## False alarms
Saliency maps, attacks and gradient checks call backward without any optimizer and stay silent.
Hand-written updates are seen as changed parameters. Optimizers that step inside of hooks during
backward do step. An optimizer whose turn comes late, or every fifth batch, has stepped by the end;
one that was replaced by another is no longer cleared. An evaluation runs without gradients, or goes
over its samples once; a schedule that is drawn by stepping an empty optimizer calls no model.

## References
`optimizer.step` without its brackets is a legal expression that does nothing; linters name it B018.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import NO_GRADIENT, Event, Finding, Fix, Run, Site
from sawbones.stats.protocol import STEP_KINDS
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of, numbers_equal

NEEDS = ("events", "optimizers")
USES = ("source_calls", "source_numbers")
EXPLAINS = (
    "optimizer.lr-too-low",
    "model.frozen-params",
    "data.labels-misaligned",
    "loop.no-zero-grad",
    "evaluation.collapsed-prediction",
    "loop.scheduler-order",
    "optimizer.schedule",
)
EXPERIMENT = None
MIN_PASSES = 3  # a gradient check or a saliency map takes one or two
MIN_CALLS = 10  # of the model, in a loop without backward passes
MIN_ROUNDS = 3  # over the same samples: an evaluation takes one
_ENDED = ("finished", "budget", "interrupted", "exit")
WINDOW_WORDS = ("accum", "window", "every", "per_step", "per_update", "micro")


def check(run: Run) -> Iterator[Finding]:
    backwards = [e for e in run.of_kind("backward") if e.phase == "train"]
    if not run.of_kind("backward"):
        yield from _no_backward(run)
        return
    if len(backwards) < MIN_PASSES:
        raise NothingToJudge(f"fewer than {MIN_PASSES} backward passes of training")
    if run.of_kind(*STEP_KINDS):
        yield from _left_out(run, backwards)
        return
    if run.ending.kind not in _ENDED:
        raise NothingToJudge("the run ended by an error before its first step")
    held = [t for t in run.tensors if t.optimizer >= 0]
    if held and not any(t.in_model for t in held):
        return  # the optimizer holds something that is no part of the model
    unused = calls_of(run, ("bare",), ("step",))
    written = calls_of(run, ("loop",), ("step",))
    yield finding(
        f"{len(backwards)} backward passes and not one optimizer step: nothing is learnt",
        (*unused[:1], *_window(run, backwards), *locate(backwards[0]), *written[:2]),
        (
            exact(
                f"{len(backwards)} backward passes, 0 steps of {run.optimizers[0].cls}, "
                "no parameter changed",
                0,
                expected=len(backwards),
                signal="events",
            ),
        ),
        Fix("Call step() of the optimizer after backward()."),
    )


def _no_backward(run: Run) -> Iterator[Finding]:
    """A loop that computes its loss and never differentiates it."""
    calls = [e for e in run.of_kind("forward") if e.phase == "train"]
    if len(calls) < MIN_CALLS or run.ending.kind not in _ENDED:
        raise NothingToJudge(f"no backward pass, and fewer than {MIN_CALLS} calls with gradients")
    cleared, steps = run.of_kind("zero_grad"), run.of_kind(*STEP_KINDS)
    trained = [b for b in run.batches if b.phase == "train"]
    rounds = max(Counter(row for b in trained for row in b.fingerprints).values(), default=0)
    loop = min(len(cleared), len(calls)) >= MIN_PASSES or len(steps) >= MIN_PASSES
    losses = [e for e in run.of_kind("loss") if e.phase == "train"]
    again = rounds >= MIN_ROUNDS and len(losses) >= MIN_CALLS
    if not (loop or again) or _has_gradients(run):
        return
    seen = [f"{len(calls)} calls of the model with gradients on", "0 backward passes"]
    if steps:
        seen.append(f"{len(steps)} optimizer steps without any gradient")
    if rounds >= MIN_ROUNDS:
        seen.append(f"the same samples came {rounds} times")
    yield finding(
        "backward() is never called: no gradient is computed, nothing trains",
        locate(*losses[:1], *calls[:1], *steps[:1], *cleared[:1]),
        (exact(", ".join(seen), 0, expected=len(calls), signal="events"),),
        Fix("Call loss.backward() and then optimizer.step() for every batch."),
    )


def _has_gradients(run: Run) -> bool:
    """Some parameter had a gradient on some step, however it was computed."""
    gradients = run.statistics.get("grad_l2")
    held = [t.index for t in run.tensors if t.optimizer >= 0]
    if gradients is None or not gradients.size:
        return False
    return any(bool((gradients[:, index] != NO_GRADIENT).any()) for index in held)


def _left_out(run: Run, backwards: list[Event]) -> Iterator[Finding]:
    """One optimizer of several that takes part in every turn of the loop but for its step."""
    steps = run.of_kind("step")
    if run.of_kind("manual_step") or run.ending.kind not in ("finished", "exit"):
        return
    stepping = {e.data.get("optimizer") for e in steps}
    for optimizer in (o for o in run.optimizers if o.index not in stepping):
        cleared = [
            e
            for e in run.of_kind("zero_grad")
            if e.data.get("optimizer") == optimizer.index and e.phase == "train"
        ]
        held = [t for t in run.tensors if t.optimizer == optimizer.index]
        whole = len(held) == sum(int(g.get("num_params", 0)) for g in optimizer.groups)
        trained = whole and any(t.requires_grad for t in held)
        if not trained or not cleared or 2 * len(cleared) < len(backwards):
            continue
        # The turns in which it is cleared: those of a stage that it has no part in do not count.
        beside = [e for e in steps if cleared[0].seq < e.seq]
        if len(beside) < MIN_PASSES:
            continue
        unused = calls_of(run, ("bare",), ("step",))
        yield finding(
            f"One of {len(run.optimizers)} optimizers never steps: its {len(held)} "
            "parameters stay as they were drawn",
            (*unused[:1], *locate(beside[0], backwards[0], cleared[0])),
            (
                exact(
                    f"{len(cleared)} times its gradients were cleared, {len(backwards)} "
                    "backward passes, 0 steps of this "
                    f"{optimizer.cls}; the others stepped {len(beside)} times",
                    0,
                    expected=len(cleared),
                    signal="events",
                ),
            ),
            Fix("Call step() of this optimizer too, or leave it out of the loop."),
            at_most="likely",  # its turn may come in a longer run
        )
        return


def _window(run: Run, backwards: list[Event]) -> tuple[Site, ...]:
    """Where the number stands that the loss is divided by, when it is more micro-batches than ever
    come between two clearings.
    """
    shares = [
        call.facts.root_over_mean
        for deep in run.deep
        for call in deep.losses
        if call.facts.reaches_root
    ]
    divided = [
        1 / s
        for s in shares
        if isinstance(s, float) and s > 0 and limits.LOSS_IS_DIVIDED.undercut_by(s)
    ]
    if not divided:
        return ()
    window = round(divided[0])
    if limits.WHOLE_NUMBER.passed_by(abs(divided[0] - window)):
        return ()
    clears = [e.seq for e in run.of_kind("zero_grad")]
    reached = max(Counter(bisect(clears, e.seq) for e in backwards).values())
    return numbers_equal(run, window, words=WINDOW_WORDS)[:1] if window - reached > 0 else ()
