"""A scaler that skips a large share of the steps

## What it sees
Steps that the scaler left out because gradients were not finite. The first skips after the start
are how a scaler finds its scale and do not count. Fires when at least 15 % of the steps after that
are skipped, or when a quarter of the run and 20 steps pass before one fits; from step 20.

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
No experiment: the skipped steps were counted, and the scale was recorded at each.

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

from sawbones.evidence import NothingToJudge, context, counted, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import numbers_equal

NEEDS = ("scaler", "steps")
USES = ("scalers", "source_numbers")
EXPLAINS = ("loop.scheduler-order", "optimizer.lr-too-low")
EXPERIMENT = None
MIN_STEPS = 20  # the search for a scale takes a dozen or so
MIN_SKIPPED = 4  # fewer are outliers
DEFAULTS = {
    "init_scale": 65536,
    "growth_factor": 2,
    "backoff_factor": 1 / 2,
    "growth_interval": 2000,
}


def check(run: Run) -> Iterator[Finding]:
    skipped = run.steps["skipped"] > 0
    if len(skipped) < MIN_STEPS:
        raise NothingToJudge(f"fewer than {MIN_STEPS} optimizer steps")
    taken = np.flatnonzero(~skipped)
    # Skips until the first step that fits are the search for a scale.
    start = int(taken[0]) if len(taken) else len(skipped)
    rest = skipped[start:]
    never = start >= MIN_STEPS and limits.SEARCHING_STEPS.reached_by(start / len(skipped))
    often = len(rest) > 0 and limits.SKIPPED_STEPS.reached_by(float(np.mean(rest)))
    if not never and (not often or rest.sum() < MIN_SKIPPED):
        return
    scales, num_skipped = run.steps["scale"], int(skipped.sum())
    where, own_settings = _where(run, never)
    yield finding(
        f"The scaler skips {num_skipped / len(skipped):.0%} of the steps",
        where,
        (
            counted(
                f"{num_skipped} of {len(skipped)} steps were skipped, "
                f"{int(rest.sum())} of them after the first that fitted",
                num_skipped,
                len(skipped),
                limits.SKIPPED_STEPS,
                signal="steps",
                steps=[int(i) for i in np.flatnonzero(skipped)[:5]],
            ),
            context(
                f"the scale goes from {scales[0]:g} to {scales[-1]:g}",
                signal="scaler",
                steps=(0, len(scales) - 1),
                value=float(scales[-1]),
            ),
        ),
        Fix(
            "Begin with a scale that fits (65536 is the default) and let it grow rarely "
            "(growth_interval=2000, growth_factor=2)."
            if own_settings
            else "Keep what overflows (loss, large sums, scores) out of float16, or use "
            "bfloat16; only then turn autocast off."
        ),
    )


def _where(run: Run, never: bool) -> tuple[tuple[Site, ...], bool]:
    """The places, and whether the settings of the scaler itself are the cause."""
    scalers = run.scalers
    grows = [s for s in scalers if (s.growth_interval or 2000) < 50 or (s.growth_factor or 2) > 4]
    odd = grows or (list(scalers) if never else [])
    built = locate(*(s for s in odd or scalers))[:1]
    stepped = run.of_kind("scaler_step")[0].site
    if not odd:
        return locate(_overflow(run), stepped, *built), False
    values = [
        float(value)
        for s in odd
        for key, usual in DEFAULTS.items()
        if (value := getattr(s, key)) is not None and value != usual
    ]
    # So large a number is no other scale. Names of command-line options count too.
    words = [*DEFAULTS, *(["scale"] if values and min(values) >= 1024 else [])]
    numbers = numbers_equal(run, *values, words=("scale", "growth", "backoff", "interval"))
    of_scaler = [n for n in numbers if any(w in n.code.lower().replace("-", "_") for w in words)]
    return locate(*of_scaler[:1], *built, stepped), True


def _overflow(run: Run) -> Site | None:
    """The largest float16 value of the forward pass, when it is near the end of the range."""
    sizes = [
        (np.inf if v.nonfinite else max(abs(v.min or 0), abs(v.max or 0)), op.site)
        for deep in run.deep
        for op in deep.ops
        for v in op.outputs
        if v.dtype == "float16" and op.site is not None
    ]
    largest = max(sizes, key=lambda found: found[0], default=(0, None))
    return largest[1] if limits.NEAR_OVERFLOW.passed_by(largest[0]) else None
