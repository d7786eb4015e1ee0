"""One bad batch throws the run

## What it sees
A step whose loss stands far out of the steps before (ten robust deviations and at least double), from step 10, with the steps
after it, or the end of the run, worse than those before by a good part of the first loss. Up to three such batches. A loss 100
times above all before it, or five times with a gradient twenty times above, right after an ordinary update from an ordinary
gradient, comes from the batch. Whether they are the cause is for the experiment, which leaves them out.

## Why it matters
Outliers, corrupt samples and far too long sequences undo what was learnt, at every epoch anew.

## Looks like
A spike, then a slow recovery; again at the same place of the next epoch.

## Example
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()

## Use instead
    for x, y in loader:
        loss = criterion(model(x), y).clamp(max=10.0)
        loss.backward()

## Confirm it
The script runs again without the updates of these batches. Confirmed when the loss of the steps after them is clearly lower.

## False alarms
Losses of GANs and of reinforcement learning spike without worse steps after; a spike that nothing follows from is not named.
A run that diverges from its LR has no calm stretch before.

## References
PaLM (2022) restarted from a checkpoint and skipped some 200 batches around each spike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.divergence import FAR_LOSS, FAR_NORM, recent_ratio
from sawbones.stats.protocol import sites_of, update_ratios
from sawbones.stats.series import end_level, finite, spikes, start_level

NEEDS = ("steps", "losses", "backward")
EXPLAINS = ("optimizer.lr-too-high", "loop.exploding-gradients")
EXPERIMENT = "skip_batch"
EARLIEST, MOST, WORSE = 10, 3, 0.15
FAR, ORDINARY = 100.0, 0.05


def check(run: Run) -> Iterator[Finding]:
    losses = run.losses
    if len(losses) < 2 * EARLIEST or len(run.optimizers) > 1:
        return
    begin = start_level(losses)
    high = [s for s in spikes(losses, window=20, factor=10.0) if s >= EARLIEST and not losses[s] < begin]
    out = [s for s in high if _doubles(losses, s)]
    # One spike's aftermath is not a second one; a ripple of a run that is nearly done is none.
    heads = [s for i, s in enumerate(out) if i == 0 or s - out[i - 1] > 5]
    if not heads or len(heads) > MOST:
        return
    first = heads[0]
    before, after = finite(losses[max(0, first - 10) : first]), losses[first + 1 : first + 9]
    if len(before) < 5 or not len(after):
        return
    level, size = float(np.median(before)), max(abs(begin), 1e-12)
    # A moving average of squared gradients carries a spike for long: the end tells as well as the next steps.
    worse = math.inf if np.any(~np.isfinite(after)) else max(float(np.median(after)), end_level(losses))
    top, norms = float(np.max(finite(losses[:first]))), run.steps["grad_norm"]
    usual = finite(norms[max(0, first - 20) : first - 1])
    highest = float(np.max(usual, initial=0.0))
    far = losses[first] > FAR * max(top, size) or not math.isfinite(losses[first])
    least = WORSE * min(size, max(abs(level), 0.1 * size)) if far else WORSE * size
    if level > begin + 0.5 * size or worse < level + least:
        return  # in trouble before, or unharmed after
    # Out of the blue: the update before was an ordinary one from an ordinary gradient.
    calm = len(usual) > 3 and norms[first - 1] < 4 * highest and recent_ratio(update_ratios(run), first) < ORDINARY
    both = losses[first] > FAR_LOSS * max(top, size) and norms[first] > FAR_NORM * highest
    sure = calm and math.isfinite(losses[first]) and (far or both)
    backward = next((e for e in run.of_kind("backward") if e.step == first), None)
    batches = [e for e in run.of_kind("batch") if e.step == first]
    yield Finding(
        "loop.loss-spike",
        "likely" if sure else "suspected",
        0.9 if sure else 0.55,
        f"The batch of step {first} throws the run: loss {losses[first]:.4g} after {level:.4g}",
        sites_of(*batches[:1], backward),
        (
            Evidence(
                f"loss {losses[first]:.4g} at step {first}, {level:.4g} before it", "losses", (first,), float(losses[first]), level
            ),
            Evidence(f"the steps after are at {worse:.4g}", "losses", (first + 1,), worse if math.isfinite(worse) else None, level),
        ),
        Fix("Look at this batch; drop or repair it, limit the length of samples, or clip the gradient."),
        params={"steps": heads},
    )


def _doubles(losses: np.ndarray, step: int) -> bool:
    before = finite(losses[max(0, step - 20) : step])
    level = float(np.median(before)) if len(before) else math.nan
    return not math.isfinite(losses[step]) or bool(losses[step] > level + max(abs(level), 1e-12))
