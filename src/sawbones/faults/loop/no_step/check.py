"""optimizer.step() missing or never reached

## What it sees
Backward passes, an optimizer that was built, and not one step: neither of the optimizer nor by hand
(parameters that change in place count as a step). Fires after 3 backward passes of a run that was
not cut short by an error. Of several optimizers one is enough: likely when the loop clears its
gradients before backward passes, the others step, and it never did until the run's end.

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
one that was replaced by another is no longer cleared.

## References
`optimizer.step` without its brackets is a legal expression that does nothing; linters name it B018.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from sawbones.schema import Event, Evidence, Finding, Fix, Run, Site
from sawbones.stats.protocol import STEP_KINDS, numbers_equal_to, sites_in, sites_of

NEEDS = ("backward", "optimizers")
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
ENOUGH = 3
WINDOW_WORDS = ("accum", "window", "every", "per_step", "per_update", "micro")


def check(run: Run) -> Iterator[Finding]:
    backwards = [e for e in run.of_kind("backward") if e.phase == "train"]
    yield from _left_out(run, backwards)
    if (
        run.of_kind(*STEP_KINDS)
        or len(backwards) < ENOUGH
        or run.ending.kind not in ("finished", "budget", "interrupted", "exit")
    ):
        return
    held = [t for t in run.tensors if t.optimizer >= 0 and t.in_model]
    unknown = not any(t.optimizer >= 0 for t in run.tensors)
    if not held and not unknown:
        return  # the optimizer holds something that is no part of the model
    unused = sites_in(run, ("bare",), ("step",))
    written = sites_in(run, ("loop",), ("step",))
    yield Finding(
        "loop.no-step",
        "proven",
        0.97,
        f"{len(backwards)} backward passes and not one optimizer step: nothing is learnt",
        (*unused[:1], *_window(run, backwards), *sites_of(backwards[0]), *written[:2]),
        (
            Evidence(
                (
                    f"{len(backwards)} backward passes, 0 steps of {run.optimizers[0].cls}, "
                    "no parameter changed"
                ),
                "events",
                (),
                0.0,
                float(len(backwards)),
            ),
        ),
        Fix(
            "Call optimizer.step() after backward().",
            replace=(unused[0].code, unused[0].code + "()")
            if unused and unused[0].code.endswith(".step")
            else None,
            insert_after=None if unused or written else "optimizer.step()",
        ),
    )


def _left_out(run: Run, backwards: list[Event]) -> Iterator[Finding]:
    """One optimizer of several that takes part in every turn of the loop but for its step."""
    steps = run.of_kind("step")
    stepping = {e.data.get("optimizer") for e in steps}
    if (
        len(steps) < ENOUGH
        or run.of_kind("manual_step")
        or run.ending.kind not in ("finished", "exit")
    ):
        return
    for optimizer in run.optimizers:
        cleared = [
            e
            for e in run.of_kind("zero_grad")
            if e.data.get("optimizer") == optimizer.index and e.phase == "train"
        ]
        held = [t for t in run.tensors if t.optimizer == optimizer.index]
        whole = len(held) == sum(int(g.get("num_params", 0)) for g in optimizer.groups) > 0
        if (
            optimizer.index in stepping
            or len(cleared) < 0.5 * len(backwards)
            or not whole
            or not any(t.requires_grad for t in held)
        ):
            continue
        # The turns in which it is cleared: those of a stage that it has no part in do not count.
        beside = [e for e in steps if cleared[0].seq < e.seq]
        if len(beside) < ENOUGH:
            continue
        unused = sites_in(run, ("bare",), ("step",))
        yield Finding(
            "loop.no-step",
            "likely",
            0.93,
            (
                f"One of {len(run.optimizers)} optimizers never steps: its {len(held)} "
                "parameters stay as they were drawn"
            ),
            (*unused[:1], *sites_of(beside[0], backwards[0], cleared[0])),
            (
                Evidence(
                    f"{len(cleared)} times its gradients were cleared, {len(backwards)} backward passes, 0 steps of this "
                    f"{optimizer.cls}; the others stepped {len(beside)} times",
                    "events",
                    (),
                    0.0,
                    float(len(cleared)),
                ),
            ),
            Fix("Call step() of this optimizer too, or leave it out of the loop."),
        )
        return


def _window(run: Run, backwards: list[Event]) -> tuple[Site, ...]:
    """Where the number stands that the loss is divided by, when it is more micro-batches than ever
    come between two clearings.
    """
    shares = [
        call.facts.get("root_over_mean")
        for deep in run.deep
        for call in deep.losses
        if call.facts.get("reaches_root")
    ]
    known = [1 / s for s in shares if isinstance(s, float) and 0 < s < 0.9]
    if not known or abs(known[0] - round(known[0])) > 0.01:
        return ()
    clears = [e.seq for e in run.of_kind("zero_grad")]
    reached = Counter(bisect(clears, e.seq) for e in backwards)
    return (
        numbers_equal_to(run, [float(round(known[0]))], WINDOW_WORDS)[:1]
        if max(reached.values()) < known[0]
        else ()
    )
