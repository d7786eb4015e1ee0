"""GradScaler protocol broken: bypassed, not updated, unscaled twice, or stepping on gradients that were never scaled

## What it sees
The order of scaler events in every step, and torch's own refusals. Bypassed: the loss is scaled, and the optimizer steps without
the scaler and without unscale_, on gradients that are S times too large. Never scaled: the scaler divides gradients of a loss that
it never multiplied. Never updated: no update() while steps are taken. From step 0; at least 80 % of the steps.

## Why it matters
Steps are thousands of times too large or too small, the scale can't adapt, or the script dies at the second step.

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
unscale_ followed by the optimizer's own step uses right gradients and only loses the check for Inf: mentioned at most. Several
losses scaled one by one, or divided after scaling, count as scaled. A disabled scaler does nothing and is not recorded.

## References
PyTorch, Automatic Mixed Precision examples; the RuntimeErrors quoted above are torch's.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.protocol import Turn, sites_in, sites_of, turns

NEEDS = ("events",)
EXPLAINS = (
    "optimizer.lr-too-high", "optimizer.lr-too-low", "loop.exploding-gradients", "loop.scaler-skipping", "loop.loss-spike",
    "loss.unstable-log", "model.vanishing-gradients", "loop.amp-no-scaler",
)  # fmt: skip
EXPERIMENT = None
SHARE = 0.8
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
    "unscale_() is being called after step()": ("unscale_() comes after step()", "Call unscale_() before scaler.step()."),
    "No inf checks were recorded": (
        "the scaler is updated or stepped without scaled gradients",
        "Use scaler.scale(loss).backward(), then scaler.step(optimizer), then scaler.update(), once per optimizer step.",
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
    bypassed = [t for t in whole if t.of("scale") and _scale(t) > 1 and t.scaler_step is None and not t.of("unscale")]
    unscaled = [t for t in whole if t.scaler_step is not None and not any(e.data.get("scaled") for e in t.backwards)]
    unscaled = [t for t in unscaled if not t.of("scale") or _root_is_plain(t)]
    if len(bypassed) >= SHARE * len(whole):
        turn = bypassed[0]
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.98,
            f"The optimizer steps past the scaler, on gradients that are {_scale(turn):g} times too large",
            sites_of(turn.taken, turn.backwards[-1]),
            (
                Evidence(
                    f"loss scaled by {_scale(turn):g}, then optimizer.step() without unscale_ or scaler.step(), "
                    f"at {len(bypassed)} of {len(whole)} steps",
                    "events",
                    tuple(t.step for t in bypassed[:5]),
                    _scale(turn),
                    1.0,
                ),
            ),
            Fix("Step through the scaler: scaler.step(optimizer); scaler.update()."),
        )
    elif len(unscaled) >= SHARE * len(whole):
        turn = unscaled[0]
        scale = float((turn.scaler_step.data.get("scale") if turn.scaler_step else None) or 1.0)
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.95,
            f"The scaler divides gradients by {scale:g} that it never multiplied: backward() ran on the unscaled loss",
            sites_of(turn.backwards[-1], turn.scaler_step),
            (
                Evidence(
                    f"scaler.step() after a backward pass of an unscaled loss at {len(unscaled)} of {len(whole)} steps",
                    "events",
                    tuple(t.step for t in unscaled[:5]),
                    1.0,
                    scale,
                ),
            ),
            Fix("Call scaler.scale(loss).backward()."),
        )
    elif not run.of_kind("scaler_update") and sum(t.scaler_step is not None for t in whole) >= 5:
        turn = next(t for t in whole if t.scaler_step is not None)
        yield Finding(
            "loop.scaler-misuse",
            "proven",
            0.95,
            "scaler.update() is never called: the loss scale can't adapt",
            sites_of(turn.scaler_step),
            (Evidence(f"{len(whole)} scaler steps, 0 updates", "events", (0,), 0.0, float(len(whole))),),
            Fix("Call scaler.update() once after scaler.step().", insert_after="scaler.update()"),
        )


def _scale(turn: Turn) -> float:
    known = [e.data.get("scale") for e in turn.of("scale")]
    return float(known[-1]) if known and known[-1] else 1.0


def _root_is_plain(turn: Turn) -> bool:
    """The root of the backward has the size of the loss itself: it is no scaled value that was divided or added afterwards."""
    losses = [abs(e.data["value"]) for e in turn.of("loss") if e.data.get("grad") and isinstance(e.data.get("value"), float)]
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
    place = (*sites_of(steps[-1]), *at) if steps and "update() is missing" in title else (*at, *written[:1])
    yield Finding(
        "loop.scaler-misuse",
        "proven",
        0.98,
        f"GradScaler protocol broken: {title}",
        place,
        (Evidence(f"{run.ending.exception}: {message.splitlines()[0][:160]}", "crash", (run.num_steps,)),),
        Fix(advice),
    )
