"""GradScaler protocol broken: bypassed, not updated, unscaled twice, or stepping on gradients that were never scaled

## What it sees
The order of scaler events in every step, and torch's own refusals. Bypassed: the loss is scaled,
and the optimizer steps without the scaler and without unscale_, on gradients that are S times too
large; each optimizer is read on its own. Never scaled: the scaler divides gradients of a loss that
it never multiplied. In part: backward starts at a sum of a scaled loss and of a term that is not,
both of which lead to parameters whose gradients the scaler divides; read off the autograd graph,
with the constant before the term, at two steps. Never updated: no update() while steps are taken. Made anew: one line builds a
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
step. Several losses scaled one by one, or divided after scaling, count as scaled, and
so does a term that is multiplied by the scale by hand (by more than 1/16 of it), by zero, or by
what cannot be read. A disabled scaler does nothing and is not recorded.

## References
PyTorch, Automatic Mixed Precision examples; the RuntimeErrors quoted above are torch's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, exact, finding, refused
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Finding, Fix, Run
from sawbones.stats.loss_scale import scale_of
from sawbones.stats.protocol import Turn, turns
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("events",)
USES = ("scalers", "source_calls")
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
RECORDED = 400  # scalers of which a recording tells
MIN_STEPS = 5  # a run of fewer may end before the first update, or build one scaler per model
MIN_SCALE = 16  # below it, a scaled root cannot be distinguished from a plain one
# What torch says -> (what is wrong, what to do)
NOT_UPDATED = "step() has already been called since the last update()"
REFUSALS = {
    NOT_UPDATED: (
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
    refusal = next((text for text in REFUSALS if text in (run.ending.message or "")), None)
    if run.ending.kind == "exception" and refusal is not None:
        yield _refused(run, refusal)
        return
    whole = [t for t in turns(run) if t.backwards]
    if not run.of_kind("scale", "scaler_step") or len(whole) < 2:
        raise NothingToJudge("no GradScaler was used for two steps")
    if run.ending.kind == "exception":
        return
    found = (
        _bypassed(run)
        or _overflow_used(run)
        or _never_scaled(whole)
        or _in_part(run, whole)
        or _made_anew(run)
        or _never_updated(run, whole)
    )
    if found is not None:
        yield found


def _bypassed(run: Run) -> Finding | None:
    """An optimizer that uses scaled gradients as they are."""
    taken, past = _steps_on_scaled_gradients(run)
    for optimizer, found in past.items():
        share = len(found) / taken[optimizer]
        step, scale = found[0]
        if len(found) < 2 or not limits.STEPS_OUT_OF_ORDER.reached_by(share) or scale <= 1:
            continue
        before = [e for e in run.of_kind("backward") if e.seq < step.seq]
        others = " while another optimizer goes through it" if run.of_kind("scaler_step") else ""
        return finding(
            f"The optimizer steps past the scaler, on gradients that are {scale:g} times "
            f"too large{others}",
            locate(step, *before[-1:]),
            (
                exact(
                    f"loss scaled by {scale:g}, then step() of "
                    f"{step.data.get('cls', 'the optimizer')} without unscale_ or "
                    f"scaler.step(), {len(found)} times",
                    scale,
                    expected=1,
                    signal="events",
                    steps=[e.step for e, _ in found[:5]],
                ),
            ),
            Fix("Step through the scaler: scaler.step(optimizer); scaler.update()."),
        )
    return None


def _steps_on_scaled_gradients(
    run: Run,
) -> tuple[Counter[int], dict[int, list[tuple[Event, float]]]]:
    """Steps of each optimizer, and those of them, with the scale, that found scaled gradients.

    Each optimizer is read on its own, from one of its steps to the next: in a GAN one network may
    be trained without a scaler.
    """
    through = {(e.step, e.data.get("optimizer")) for e in run.of_kind("scaler_step")}
    taken: Counter[int] = Counter()
    past: dict[int, list[tuple[Event, float]]] = {}
    backwards: list[bool] = []  # of the run so far: was the root scaled?
    begins: dict[int, int] = {}  # optimizer -> its first backward since its last step
    unscaled: set[int] = set()
    fresh, scale = False, float(1)
    for event in run.events:
        if event.kind == "scale":
            fresh, scale = True, float(event.data.get("scale") or 1)
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
            # After a NaN the scale falls below 1: no less wrong.
            if since and all(since) and not own and scale != 1:
                past.setdefault(optimizer, []).append((event, scale))
    return taken, past


def _overflow_used(run: Run) -> Finding | None:
    """The first step that an optimizer took by itself, after unscale_, on gradients that the scale
    alone has made infinite.
    """
    through = {(e.step, e.data.get("optimizer")) for e in run.of_kind("scaler_step")}
    keys = zip(run.steps.get("step", ()), run.steps.get("optimizer", ()), strict=True)
    rows = {(int(s), int(o)): i for i, (s, o) in enumerate(keys)}
    for turn in turns(run):
        row = rows.get((turn.step, turn.optimizer))
        own = (turn.step, turn.taken.data.get("optimizer")) not in through
        if row is None or turn.skipped or not turn.of("unscale") or not own:
            continue
        scale = scale_of(turn)
        if not np.isfinite(run.losses[row]):
            return None  # the forward pass was lost before the gradients were
        if not np.isfinite(run.steps["grad_norm"][row]):
            return _on_overflow(turn.taken, scale) if scale > 1 else None
    return None


def _on_overflow(step: Event, scale: float) -> Finding:
    return finding(
        "The optimizer steps without the scaler, so a step on gradients that "
        "overflowed is taken and not skipped",
        locate(step),
        (
            exact(
                f"step {step.step}: the loss is finite, the gradients at a scale of "
                f"{scale:g} are not, and "
                f"{step.data.get('cls', 'the optimizer')}.step() ran after unscale_, not "
                "scaler.step()",
                1,
                signal="events",
                steps=(step.step,),
            ),
        ),
        Fix(
            "Step through the scaler, which skips such steps: scaler.step(optimizer); "
            "scaler.update()."
        ),
    )


def _never_scaled(whole: list[Turn]) -> Finding | None:
    unscaled = [
        t
        for t in whole
        if t.scaler_step is not None
        and not any(e.data.get("scaled") for e in t.backwards)
        and (not t.of("scale") or _root_is_plain(t))
    ]
    if not limits.STEPS_OUT_OF_ORDER.reached_by(len(unscaled) / len(whole)):
        return None
    turn = unscaled[0]
    scale = float((turn.scaler_step.data.get("scale") if turn.scaler_step else None) or 1)
    return finding(
        f"The scaler divides gradients by {scale:g} that it never multiplied: "
        "backward() ran on the unscaled loss",
        locate(turn.backwards[-1], turn.scaler_step),
        (
            exact(
                "scaler.step() after a backward pass of an unscaled loss at "
                f"{len(unscaled)} of {len(whole)} steps",
                len(unscaled),
                signal="events",
                steps=[t.step for t in unscaled[:5]],
            ),
        ),
        Fix("Call scaler.scale(loss).backward()."),
    )


def _in_part(run: Run, whole: list[Turn]) -> Finding | None:
    """A term of the loss that goes past the scaler, to parameters whose optimizer steps through
    it.
    """
    found = []
    for turn in whole:
        scale = scale_of(turn)
        through = {
            t.index
            for t in run.tensors
            if turn.scaler_step and t.optimizer == turn.scaler_step.data.get("optimizer")
        }
        for backward in turn.backwards:
            beside = backward.data.get("beside")
            if (
                beside
                and through & set(beside["tensors"])
                and scale / beside["factor"] >= MIN_SCALE
            ):
                found.append((turn, backward, float(beside["factor"]), scale))
    if len(found) < 2:
        return None
    turn, backward, factor, scale = found[0]
    return finding(
        f"Only a part of the loss is scaled: the gradients of the rest are divided by {scale:g} "
        "for nothing",
        locate(turn.of("scale")[-1], backward),
        (
            exact(
                f"backward() ran on a sum of a loss scaled by {scale:g} and of a term that is "
                f"multiplied by {factor:g}, at {len(found)} steps; both train parameters whose "
                "gradients scaler.step() divides by the scale",
                factor,
                expected=scale,
                signal="events",
                steps=[t.step for t, *_ in found[:5]],
            ),
        ),
        Fix("Add up all terms first, then scale: scaler.scale(loss + weight * other).backward()."),
    )


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
    if not roots or not any(losses) or scale_of(turn) < MIN_SCALE:
        return False
    return limits.PLAIN_ROOT.undercut_by(max(roots) / sum(losses))


def _made_anew(run: Run) -> Finding | None:
    """A line that builds about as many scalers as there are steps. One per fold or per model is
    another matter.
    """
    built = Counter(scaler.site for scaler in run.scalers)
    del built[None]
    if not built:
        return None
    site, made = built.most_common(1)[0]
    steps = max(1, min(len(run.of_kind("scaler_step")), RECORDED))
    if made < MIN_STEPS or not limits.STEPS_OUT_OF_ORDER.reached_by(made / steps):
        return None
    scales = [(e, float(e.data.get("scale") or 1)) for e in run.of_kind("scale")]
    return finding(
        "A new GradScaler is made for every step: the scale starts over each time and never adapts",
        locate(site, scales[0][0]),
        (
            exact(
                f"{made} scalers built on one line for {len(scales)} scaled losses; the "
                f"scale is {scales[0][1]:g} at the first "
                f"and {scales[-1][1]:g} at the last",
                made,
                expected=1,
                signal="scaler",
            ),
        ),
        Fix("Build the scaler once, before the loop, and keep it."),
    )


def _never_updated(run: Run, whole: list[Turn]) -> Finding | None:
    through = [t for t in whole if t.scaler_step is not None]
    if run.of_kind("scaler_update") or len(through) < MIN_STEPS:
        return None
    return finding(
        "scaler.update() is never called: the loss scale can't adapt",
        locate(through[0].scaler_step),
        (
            exact(
                f"{len(whole)} scaler steps, 0 updates",
                0,
                expected=len(whole),
                signal="events",
                steps=(0,),
            ),
        ),
        Fix("Call update() of the scaler once after its step()."),
    )


def _refused(run: Run, refusal: str) -> Finding:
    title, advice = REFUSALS[refusal]
    steps, at = run.of_kind("scaler_step"), run.ending.site
    written = calls_of(run, ("loop",), ("step",))[:1] if refusal == NOT_UPDATED else ()
    where = (*locate(steps[-1]), at) if steps and refusal == NOT_UPDATED else (at, *written)
    first = (run.ending.message or "").splitlines()[0][:160]
    return finding(
        f"GradScaler protocol broken: {title}",
        locate(*where),
        (refused(f"{run.ending.exception}: {first}", steps=(run.num_steps,)),),
        Fix(advice),
    )
