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

from sawbones.schema import Event, Evidence, Finding, Fix, Run
from sawbones.stats.protocol import Turn, measured, sites_of, turns
from sawbones.stats.series import finite

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
SHARE = 0.8
# Nobody asks for a limit this small: a constant norm below it is max_norm / scale.
SMALL_LIMIT = 1e-3


def check(run: Run) -> Iterator[Finding]:
    scaled = [t for t in turns(run) if t.backwards and t.of("scale") and t.scaler_step is not None]
    if not scaled:
        return
    clipped = [(t, c) for t in scaled if (c := _first_clip(t)) is not None]
    if clipped:
        yield from _by_order(clipped)
    else:
        yield from _by_constant_norm(run, scaled)


def _first_clip(turn: Turn) -> Event | None:
    last = max(e.seq for e in turn.backwards)
    return next((e for e in turn.of("clip") if e.seq > last), None)


def _scale(turn: Turn) -> float:
    known = [e.data.get("scale") for e in turn.of("scale")]
    return float(known[-1]) if known and known[-1] else 1.0


def _by_order(clipped: list[tuple[Turn, Event]]) -> Iterator[Finding]:
    early = [
        (t, c)
        for t, c in clipped
        if not any(u.seq < c.seq for u in t.of("unscale")) and _scale(t) > 1
    ]
    if len(early) < max(1, SHARE * len(clipped)):
        return
    limits = np.array([float(c.data.get("max_norm") or np.nan) for _, c in early])
    scales = np.array([_scale(t) for t, _ in early])
    norms = np.array([float(c.data.get("norm", np.nan)) for _, c in early])
    by_value = early[0][1].data.get("fn") == "clip_grad_value_"
    active = np.isfinite(norms) & (norms > limits)
    effective = limits / scales
    if (
        not np.all(np.isfinite(limits))
        or (not by_value and np.mean(active) < 0.5)
        or np.median(effective) > 0.02
    ):
        return
    if (
        len(set(scales)) > 1
        and len(set(limits)) > 1
        and np.ptp(effective) < 1e-3 * np.max(effective)
    ):
        return  # the limit is multiplied by the scale
    turn, clip = early[0]
    limit, scale = float(limits[0]), float(scales[0])
    shown = (
        f"; its norm was {norms[0]:.4g}, really {norms[0] / scale:.4g}"
        if np.isfinite(norms[0])
        else ""
    )
    yield Finding(
        "loop.clip-before-unscale",
        "proven",
        0.98,
        (
            "Gradients are clipped while still multiplied by the loss scale: the real limit "
            f"is {limit / scale:.2g}, not {limit:g}"
        ),
        sites_of(clip, turn.backwards[-1]),
        (
            Evidence(
                (
                    f"clip before unscale_ at {len(early)} of {len(clipped)} clipped steps, "
                    f"with a loss scale of {scale:g}{shown}"
                ),
                "events",
                tuple(t.step for t, _ in early[:5]),
                len(early) / len(clipped),
                0.0,
            ),
            Evidence(
                f"after unscaling, at most {limit / scale:.3g} is left of the gradient",
                "clipping",
                (turn.step,),
                limit / scale,
                limit,
            ),
        ),
        _fix(),
    )


def _by_constant_norm(run: Run, scaled: list[Turn]) -> Iterator[Finding]:
    """No clip of torch's was called: a hand-written one pins the norm (or the largest element) of
    the scaled gradients.
    """
    kept = [t for t in scaled if not t.skipped and _scale(t) > 1]
    if len(kept) < 8:
        return
    scales = np.array([_scale(t) for t in kept])
    rows = {int(s): i for i, s in enumerate(run.steps["step"])}
    norms = np.array(
        [run.steps["grad_norm"][rows[t.step]] if t.step in rows else np.nan for t in kept]
    )
    peaks = np.array([max(finite(measured(run, "grad_max", t.step)), default=np.nan) for t in kept])
    unscaled = sum(bool(t.of("unscale")) for t in kept) > 0.5 * len(kept)
    for what, values in (("norm", norms), ("largest element", peaks)):
        known = np.isfinite(values) & (values > 0)
        if known.sum() < 8:
            continue
        pinned = values[known] * scales[known]
        level = float(np.median(pinned))
        share = float(np.mean(np.abs(pinned - level) < 1e-3 * level))
        small = float(np.median(values[known])) < SMALL_LIMIT
        if share < SHARE or (unscaled and not small) or level > 0.02 * float(np.median(scales)):
            continue
        turn = kept[0]
        real = level / float(scales[0])
        yield Finding(
            "loop.clip-before-unscale",
            "likely" if unscaled else "proven",
            0.85 if unscaled else 0.96,
            (
                f"Gradients are limited to {level:.3g} while still multiplied by the loss "
                f"scale: the real limit is {real:.2g}"
            ),
            sites_of(turn.backwards[-1], turn.scaler_step),
            (
                Evidence(
                    (
                        f"the {what} of the gradients times the loss scale is {level:.4g} at "
                        f"{share:.0%} of the steps"
                    ),
                    "steps",
                    tuple(t.step for t in kept[:5]),
                    level,
                    level * float(scales[0]),
                ),
                Evidence(
                    f"what reaches the optimizer is {real:.3g}", "steps", (turn.step,), real, level
                ),
            ),
            _fix(),
        )
        return


def _fix() -> Fix:
    return Fix(
        "Call scaler.unscale_(optimizer) after backward() and before clipping.",
        insert_before="scaler.unscale_(optimizer)",
    )
