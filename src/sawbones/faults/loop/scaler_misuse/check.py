"""GradScaler protocol broken: bypassed, not updated, unscaled twice, or stepping on gradients that were never scaled

## What it sees
The order of scaler events in every step, and torch's own refusals. Bypassed: the loss is scaled,
and the optimizer steps without the scaler and without unscale_, on gradients that are S times too
large; each optimizer is read on its own. Never scaled: the scaler divides gradients of a loss that
it never multiplied. Never updated: no update() while steps are taken. Made anew: one line builds a
scaler for every step, so that what the last one learnt is lost. From step 0; at least 80 % of the
steps. Overflow used: after unscale_ the optimizer steps by itself, on gradients that are not finite
although the loss is; once is enough.

## Why it matters
Steps are thousands of times too large or too small, the scale can't adapt, or the script dies at
the second step.

## Looks like
NaN at once, a loss that does not move, or "step() has already been called since the last update()".

## Example
    scaler.scale(loss).backward()
    optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

## Confirm it
The order of events is the proof, with the norm that the optimizer saw.

## False alarms
unscale_ followed by the optimizer's own step uses right gradients and only loses the check for Inf:
silent until such a step is taken, and for scripts that look at the norm themselves before they
step. Several losses scaled one by one, or divided after scaling, count as scaled. A disabled scaler
does nothing and is not recorded.

## References
PyTorch, Automatic Mixed Precision examples; the RuntimeErrors quoted above are torch's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Event, Evidence, Finding, Fix, Run, Site
from sawbones.stats.protocol import Turn, sites_in, sites_of, turns

NEEDS = ("events",)
EXPLAINS = (
    "optimizer.lr-too-high",
    "optimizer.lr-too-low",
    "loop.exploding-gradients",
    "loop.scaler-skipping",
    "loop.loss-spike",
    "loss.unstable-log",
    "model.vanishing-gradients",
    "loop.amp-no-scaler",
    "data.nonfinite-input",
)
EXPERIMENT = None
SHARE = 0.8
MOST = 400  # scalers of which a recording tells
# What torch says -> (what is wrong, what to do, which call to look for)
REFUSALS = {
    "step() has already been called since the last update()": (
        "scaler.update() is missing after scaler.step()",
        "Call scaler.update() once after scaler.step().",
    ),
    "unscale_() has already been called": (
        "unscale_() is called twice before update()",
        "Call unscale_() once per optimizer step, not per micro-batch or per clip.",
    ),
    "unscale_() is being called after step()": (
        "unscale_() comes after step()",
        "Call unscale_() before scaler.step().",
    ),
    "No inf checks were recorded": (
        "the scaler is updated or stepped without scaled gradients",
        (
            "Use scaler.scale(loss).backward(), then scaler.step(optimizer), then "
            "scaler.update(), once per optimizer step."
        ),
    ),
    "_scale is None": (
        "the scaler is used without scaler.scale(loss)",
        "Call scaler.scale(loss).backward() instead of loss.backward().",
    ),
}


def check(run: Run) -> Iterator[Finding]:
    if run.ending.kind == "exception":
        yield from _refused(run)
        return
    if not run.of_kind("scale", "scaler_step"):
        return
    whole = [t for t in turns(run) if t.backwards]
    if len(whole) < 2:
        return
    past = _past_the_scaler(run)
    unscaled = [
        t
        for t in whole
        if t.scaler_step is not None and not any(e.data.get("scaled") for e in t.backwards)
    ]
    unscaled = [t for t in unscaled if not t.of("scale") or _root_is_plain(t)]
    if past:
        scale, steps, others = past
        backward = next(
            (e for e in reversed(run.of_kind("backward")) if e.seq < steps[0].seq), None
        )
        apart = " while another optimizer goes through it" if others else ""
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.98,
            (
                f"The optimizer steps past the scaler, on gradients that are {scale:g} times "
                f"too large{apart}"
            ),
            sites_of(steps[0], backward),
            (
                Evidence(
                    f"loss scaled by {scale:g}, then step() of {steps[0].data.get('cls', 'the optimizer')} without unscale_ or "
                    f"scaler.step(), {len(steps)} times",
                    "events",
                    tuple(e.step for e in steps[:5]),
                    scale,
                    1.0,
                ),
            ),
            Fix("Step through the scaler: scaler.step(optimizer); scaler.update()."),
        )
    elif overflow := _used_overflow(run):
        event, scale = overflow
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.97,
            (
                "The optimizer steps without the scaler, so a step on gradients that "
                "overflowed is taken and not skipped"
            ),
            sites_of(event),
            (
                Evidence(
                    f"step {event.step}: the loss is finite, the gradients at a scale of {scale:g} are not, and "
                    f"{event.data.get('cls', 'the optimizer')}.step() ran after unscale_, not scaler.step()",
                    "events",
                    (event.step,),
                    scale,
                ),
            ),
            Fix(
                "Step through the scaler, which skips such steps: scaler.step(optimizer); "
                "scaler.update()."
            ),
        )
    elif len(unscaled) >= SHARE * len(whole):
        turn = unscaled[0]
        scale = float((turn.scaler_step.data.get("scale") if turn.scaler_step else None) or 1.0)
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.95,
            (
                f"The scaler divides gradients by {scale:g} that it never multiplied: "
                "backward() ran on the unscaled loss"
            ),
            sites_of(turn.backwards[-1], turn.scaler_step),
            (
                Evidence(
                    (
                        "scaler.step() after a backward pass of an unscaled loss at "
                        f"{len(unscaled)} of {len(whole)} steps"
                    ),
                    "events",
                    tuple(t.step for t in unscaled[:5]),
                    1.0,
                    scale,
                ),
            ),
            Fix("Call scaler.scale(loss).backward()."),
        )
    elif anew := _made_anew(run):
        site, made = anew
        scales = [float(e.data.get("scale") or 1.0) for e in run.of_kind("scale")]
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.96,
            (
                "A new GradScaler is made for every step: the scale starts over each time and "
                "never adapts"
            ),
            (site, *sites_of(run.of_kind("scale")[0])),
            (
                Evidence(
                    f"{made} scalers built on one line for {len(scales)} scaled losses; the scale is {scales[0]:g} at the first "
                    f"and {scales[-1]:g} at the last",
                    "scaler",
                    (),
                    float(made),
                    1.0,
                ),
            ),
            Fix("Build the scaler once, before the loop, and keep it."),
        )
    elif not run.of_kind("scaler_update") and sum(t.scaler_step is not None for t in whole) >= 5:
        turn = next(t for t in whole if t.scaler_step is not None)
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.95,
            "scaler.update() is never called: the loss scale can't adapt",
            sites_of(turn.scaler_step),
            (
                Evidence(
                    f"{len(whole)} scaler steps, 0 updates", "events", (0,), 0.0, float(len(whole))
                ),
            ),
            Fix("Call scaler.update() once after scaler.step().", insert_after="scaler.update()"),
        )


def _past_the_scaler(run: Run) -> tuple[float, list[Event], bool] | None:
    """(scale, steps, whether others go through the scaler) of an optimizer that uses scaled
    gradients as they are.

    Each optimizer is read on its own, from one of its steps to the next: in a GAN one network may
    be trained without a scaler.
    """
    through = {(e.step, e.data.get("optimizer")) for e in run.of_kind("scaler_step")}
    taken: Counter[int] = Counter()
    past: dict[int, list[tuple[Event, float]]] = {}
    backwards: list[bool] = []  # of the run so far: was the root scaled?
    begins: dict[int, int] = {}  # optimizer -> its first backward since its last step
    unscaled: set[int] = set()
    fresh, scale = False, 1.0
    for event in run.events:
        if event.kind == "scale":
            fresh, scale = True, float(event.data.get("scale") or 1.0)
        elif event.kind == "backward":
            backwards.append(fresh or bool(event.data.get("scaled")))
            fresh = False
        elif event.kind == "unscale":
            unscaled.add(int(event.data.get("optimizer", -1)))
        elif event.kind == "step" and not event.data.get("skipped"):
            optimizer = int(event.data.get("optimizer", -1))
            since = backwards[begins.get(optimizer, 0) :]
            begins[optimizer] = len(backwards)
            taken[optimizer] += 1
            own = optimizer in unscaled or -1 in unscaled or (event.step, optimizer) in through
            unscaled -= {optimizer, -1}
            if (
                since and all(since) and not own and scale != 1
            ):  # after a NaN the scale falls below 1: no less wrong
                past.setdefault(optimizer, []).append((event, scale))
    for optimizer, found in past.items():
        if len(found) >= max(2, SHARE * taken[optimizer]) and found[0][1] > 1:
            return found[0][1], [e for e, _ in found], bool(through)
    return None


def _used_overflow(run: Run) -> tuple[Event, float] | None:
    """The first step that an optimizer took by itself, after unscale_, on gradients that the scale
    alone has made infinite.
    """
    through = {(e.step, e.data.get("optimizer")) for e in run.of_kind("scaler_step")}
    losses, norms = run.steps.get("loss"), run.steps.get("grad_norm")
    if losses is None or norms is None:
        return None
    rows = {
        (int(s), int(o)): i
        for i, (s, o) in enumerate(zip(run.steps["step"], run.steps["optimizer"], strict=True))
    }
    for turn in turns(run):
        row = rows.get((turn.step, turn.optimizer))
        if (
            row is None
            or turn.skipped
            or not turn.of("unscale")
            or (turn.step, turn.taken.data.get("optimizer")) in through
        ):
            continue
        if not np.isfinite(norms[row]) and not np.isnan(losses[row]):
            return (
                (turn.taken, _scale(turn))
                if np.isfinite(losses[row]) and _scale(turn) > 1
                else None
            )
        if not np.isfinite(losses[row]):
            return None  # the forward pass was lost before the gradients were
    return None


def _made_anew(run: Run) -> tuple[Site, int] | None:
    """A line that builds about as many scalers as there are steps. One per fold or per model is
    another matter.
    """
    places = Counter(
        Site(**row["site"]) for row in run.facts.get("scalers") or () if row.get("site")
    )
    if not places:
        return None
    site, made = places.most_common(1)[0]
    return (
        (site, made) if made >= max(5, SHARE * min(len(run.of_kind("scaler_step")), MOST)) else None
    )


def _scale(turn: Turn) -> float:
    known = [e.data.get("scale") for e in turn.of("scale")]
    return float(known[-1]) if known and known[-1] else 1.0


def _root_is_plain(turn: Turn) -> bool:
    """The root of the backward has the size of the loss itself: it is no scaled value that was
    divided or added afterwards.
    """
    losses = [
        abs(e.data["value"])
        for e in turn.of("loss")
        if e.data.get("grad") and isinstance(e.data.get("value"), float)
    ]
    roots = [abs(e.data["value"]) for e in turn.backwards if isinstance(e.data.get("value"), float)]
    if not roots or _scale(turn) < 16:
        return False
    if not losses:
        return False
    return bool(max(roots) < 4 * sum(losses))


def _refused(run: Run) -> Iterator[Finding]:
    message = run.ending.message or ""
    found = next((k for k in REFUSALS if k in message), None)
    if found is None:
        return
    title, advice = REFUSALS[found]
    steps = run.of_kind("scaler_step")
    at = (run.ending.site,) if run.ending.site else ()
    written = sites_in(run, ("loop",), ("step",)) if "update() is missing" in title else ()
    place = (
        (*sites_of(steps[-1]), *at)
        if steps and "update() is missing" in title
        else (*at, *written[:1])
    )
    yield Finding(
        "loop.scaler-misuse",
        "proven",
        0.98,
        f"GradScaler protocol broken: {title}",
        place,
        (
            Evidence(
                f"{run.ending.exception}: {message.splitlines()[0][:160]}",
                "crash",
                (run.num_steps,),
            ),
        ),
        Fix(advice),
    )
