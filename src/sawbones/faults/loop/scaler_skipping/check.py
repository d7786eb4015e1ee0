"""A scaler that skips a large share of the steps

## What it sees
Steps that the scaler left out because gradients were not finite. The first skips after the start
are how a scaler finds its scale and do not count. Fires when at least 15 % of the steps after that
are skipped, or when the scale has fallen below 1 and steps are still skipped; from step 20.

## Why it matters
Skipped steps are lost work, and a scale near 1 means that float16 is overflowing in the model
itself.

## Looks like
Training is slower than in float32, the scale keeps falling or bounces, the scheduler runs ahead of
the optimizer.

## Example
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**16, growth_interval=1)

## Use instead
    scaler = torch.amp.GradScaler("cuda")

## Confirm it
The share of skipped steps and the course of the scale are the proof.

## False alarms
A start at 2**16 or above with ten or so skips until the scale fits, one skip after each growth
every 2000 steps, and a few outliers in a long run stay well under the limit.

## References
PyTorch's advice in order: look for overflow in the forward pass (a loss in float16, attention
scores), use bfloat16, then less.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.protocol import numbers_equal_to, sites_of

NEEDS = ("scaler", "steps")
EXPLAINS = ("loop.scheduler-order", "optimizer.lr-too-low")
EXPERIMENT = None
SHARE, FEWEST = 0.15, 20
DEFAULTS = {
    "init_scale": 65536.0,
    "growth_factor": 2.0,
    "backoff_factor": 0.5,
    "growth_interval": 2000,
}


def check(run: Run) -> Iterator[Finding]:
    skipped = run.steps["skipped"] > 0
    if len(skipped) < FEWEST or not skipped.any():
        return
    taken = np.flatnonzero(~skipped)
    start = (
        int(taken[0]) if len(taken) else len(skipped)
    )  # skips until the first step that fits are the search for a scale
    rest = skipped[start:]
    # From the default scale of 65536 the search ends after a dozen skips at most.
    never = start >= FEWEST and start >= 0.25 * len(skipped)
    share = float(np.mean(rest)) if len(rest) else 1.0
    if not never and (share < SHARE or rest.sum() < 4):
        return
    scales = run.steps["scale"]
    events = run.of_kind("scaler_step")
    grows = [
        s
        for s in run.facts.get("scalers", ())
        if (s.get("growth_interval") or 2000) < 50 or (s.get("growth_factor") or 2) > 4
    ]
    odd = grows or (
        list(run.facts.get("scalers", ())) if never else []
    )  # its own settings are the cause
    built = tuple(Site(**s["site"]) for s in (odd or run.facts.get("scalers", ())) if s.get("site"))
    values = [
        float(s[k])
        for s in odd
        for k, usual in DEFAULTS.items()
        if isinstance(s.get(k), (int, float)) and s[k] != usual
    ]
    numbers = (
        numbers_equal_to(run, values, ("scale", "growth", "backoff", "interval")) if odd else ()
    )
    words = (
        *DEFAULTS,
        *(("scale",) if values and min(values) >= 1024.0 else ()),
    )  # so large a number is no other scale
    of_scaler = [
        n for n in numbers if any(word in n.code.lower().replace("-", "_") for word in words)
    ]  # command-line options too
    places = (
        (*of_scaler[:1], *built[:1], *sites_of(events[0]))
        if odd
        else (*_overflow(run), *sites_of(events[0]), *built[:1])
    )
    total = float(np.mean(skipped))
    yield Finding(
        "loop.scaler-skipping",
        "proven",
        0.9,
        f"The scaler skips {total:.0%} of the steps",
        tuple(dict.fromkeys(places))[:4],
        (
            Evidence(
                (
                    f"{int(skipped.sum())} of {len(skipped)} steps were skipped, "
                    f"{int(rest.sum())} of them after the first that fitted"
                ),
                "steps",
                tuple(int(i) for i in np.flatnonzero(skipped)[:5]),
                total,
                0.01,
            ),
            Evidence(
                f"the scale goes from {scales[0]:g} to {scales[-1]:g}",
                "scaler",
                (0, len(scales) - 1),
                float(scales[-1]),
            ),
        ),
        Fix(
            (
                "Begin with a scale that fits (65536 is the default) and let it grow rarely "
                "(growth_interval=2000, growth_factor=2)."
            )
            if odd
            else (
                "Keep what overflows (loss, large sums, scores) out of float16, or use "
                "bfloat16; only then turn autocast off."
            )
        ),
    )


def _overflow(run: Run) -> tuple[Site, ...]:
    """The largest float16 value of the forward pass, when it is near the end of the range."""
    best: tuple[float, Site] | None = None
    for deep in run.deep:
        for op in deep.ops:
            for value in op.outputs:
                if value.dtype != "float16" or op.site is None:
                    continue
                size = (
                    np.inf if value.nonfinite else max(abs(value.min or 0.0), abs(value.max or 0.0))
                )
                if size > 1e3 and (best is None or size > best[0]):
                    best = (float(size), op.site)
    return (best[1],) if best else ()
