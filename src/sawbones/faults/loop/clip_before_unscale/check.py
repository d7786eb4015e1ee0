"""Gradients clipped while they are still multiplied by the loss scale

## What it sees
The order of events in every step: a scaled backward pass, a clip, and no `unscale_` before it. The
clip then compares gradients that are S times too large with max_norm, and after unscaling at most
max_norm / S is left. Fires when this happens in at least 80 % of the clipped steps and the clip was
active; the earliest is step 1. Clipping written by hand leaves another trace: without any
`unscale_`, the gradient norm times the loss scale is the same constant at nearly every step.

## Why it matters
With S = 65536 and max_norm = 1 the optimizer never sees a gradient longer than 0.000015. Plain SGD
stands still; Adam loses the relative size of steps and its epsilon begins to matter.

## Looks like
Loss hardly moves in mixed precision and trains well in float32; the logged gradient norm is in the
thousands.

## Example
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()

## Use instead
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()

## Confirm it
The order of events and the norms are the proof: the clip's own norm is S times the norm at the step
before clipping, and the norm that reached the optimizer is max_norm / S.

## False alarms
A limit multiplied by the scale (`max_norm * scaler.get_scale()`) follows the scale and stays
silent, as does a clip with an infinite limit that only measures the norm, a clip that is never
active, a disabled scaler and a scale of 1. With two optimizers and one backward only the first turn
holds the backward pass, and each turn is judged on its own.

## References
PyTorch's AMP examples ("Working with unscaled gradients") exist because of this mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, context, counted, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Event, Finding, Fix, Run
from sawbones.stats.loss_scale import scale_of
from sawbones.stats.protocol import Turn, measured, turns
from sawbones.stats.relative import relative_difference
from sawbones.stats.series import finite
from sawbones.trace.locate import locate

NEEDS = ("scaler", "steps", "backward")
EXPLAINS = (
    "optimizer.lr-too-low",
    "model.vanishing-gradients",
    "loop.half-weights",
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "model.frozen-params",
)
EXPERIMENT = None
MIN_STEPS = 8  # by chance two or three norms in a row are alike, not eight
FIX = Fix("Call scaler.unscale_(optimizer) after backward() and before clipping.")


def check(run: Run) -> Iterator[Finding]:
    scaled = [t for t in turns(run) if t.backwards and t.of("scale") and t.scaler_step is not None]
    if not scaled:
        raise NothingToJudge("no step of a scaled loss went through the scaler")
    clipped = [(t, c) for t in scaled if (c := _first_clip(t)) is not None]
    if clipped:
        yield from _by_order(clipped)
        return
    kept = [t for t in scaled if not t.skipped and scale_of(t) > 1]
    if len(kept) < MIN_STEPS:
        raise NothingToJudge(f"fewer than {MIN_STEPS} steps were taken at a loss scale above 1")
    yield from _by_constant_norm(run, kept)


def _first_clip(turn: Turn) -> Event | None:
    last = max(e.seq for e in turn.backwards)
    return next((e for e in turn.of("clip") if e.seq > last), None)


def _by_order(clipped: list[tuple[Turn, Event]]) -> Iterator[Finding]:
    early = [
        (t, c)
        for t, c in clipped
        if not any(u.seq < c.seq for u in t.of("unscale")) and scale_of(t) > 1
    ]
    if not limits.STEPS_OUT_OF_ORDER.reached_by(len(early) / len(clipped)):
        return
    asked = np.array([float(c.data.get("max_norm") or np.nan) for _, c in early])
    scales = np.array([scale_of(t) for t, _ in early])
    norms = np.array([float(c.data.get("norm", np.nan)) for _, c in early])
    by_value = early[0][1].data.get("fn") == "clip_grad_value_"
    active = float(np.mean(np.isfinite(norms) & (norms - asked > 0)))
    left = asked / scales
    known = bool(np.all(np.isfinite(asked)))
    if not known or limits.EFFECTIVE_CLIP.passed_by(float(np.median(left))):
        return
    if not by_value and not limits.CLIPS_ACTIVE.reached_by(active):
        return
    varies = len(set(scales)) > 1 and len(set(asked)) > 1
    if varies and limits.CLIP_FOLLOWS_SCALE.undercut_by(float(np.ptp(left) / np.max(left))):
        return  # the limit is multiplied by the scale
    turn, clip = early[0]
    limit, scale = float(asked[0]), float(scales[0])
    shown = (
        f"; its norm was {norms[0]:.4g}, really {norms[0] / scale:.4g}"
        if np.isfinite(norms[0])
        else ""
    )
    yield finding(
        "Gradients are clipped while still multiplied by the loss scale: the real limit "
        f"is {limit / scale:.2g}, not {limit:g}",
        locate(clip, turn.backwards[-1]),
        (
            exact(
                f"clip before unscale_ at {len(early)} of {len(clipped)} clipped steps, "
                f"with a loss scale of {scale:g}{shown}",
                len(early),
                signal="events",
                steps=[t.step for t, _ in early[:5]],
            ),
            context(
                f"after unscaling, at most {limit / scale:.3g} is left of the gradient",
                signal="clipping",
                steps=(turn.step,),
                value=limit / scale,
                expected=limit,
            ),
        ),
        FIX,
    )


def _by_constant_norm(run: Run, kept: list[Turn]) -> Iterator[Finding]:
    """No clip of torch's was called: a hand-written one pins the norm (or the largest element) of
    the scaled gradients.
    """
    scales = np.array([scale_of(t) for t in kept])
    rows = {int(s): i for i, s in enumerate(run.steps["step"])}
    norms = np.array(
        [run.steps["grad_norm"][rows[t.step]] if t.step in rows else np.nan for t in kept]
    )
    peaks = np.array([max(finite(measured(run, "grad_max", t.step)), default=np.nan) for t in kept])
    unscaled = 2 * sum(bool(t.of("unscale")) for t in kept) > len(kept)
    for what, values in (("norm", norms), ("largest element", peaks)):
        known = np.isfinite(values) & (values > 0)
        if known.sum() < MIN_STEPS:
            continue
        level = float(np.median(values[known] * scales[known]))
        pinned = [
            limits.PINNED_NORM.undercut_by(relative_difference(value, level))
            for value in values[known] * scales[known]
        ]
        share = sum(pinned) / len(pinned)
        small = limits.SMALLEST_CLIP.undercut_by(float(np.median(values[known])))
        if (
            not limits.STEPS_OUT_OF_ORDER.reached_by(share)
            or (unscaled and not small)
            or limits.EFFECTIVE_CLIP.passed_by(level / float(np.median(scales)))
        ):
            continue
        turn = kept[0]
        real = level / float(scales[0])
        yield finding(
            f"Gradients are limited to {level:.3g} while still multiplied by the loss "
            f"scale: the real limit is {real:.2g}",
            locate(turn.backwards[-1], turn.scaler_step),
            (
                counted(
                    f"the {what} of the gradients times the loss scale is {level:.4g} at "
                    f"{share:.0%} of the steps",
                    sum(pinned),
                    len(pinned),
                    limits.STEPS_OUT_OF_ORDER,
                    signal="steps",
                    steps=[t.step for t in kept[:5]],
                ),
                context(
                    f"what reaches the optimizer is {real:.3g}",
                    signal="steps",
                    steps=(turn.step,),
                    value=real,
                    expected=level,
                ),
            ),
            FIX,
        )
        return
