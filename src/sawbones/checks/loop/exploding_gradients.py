"""Gradient norm that grows without bound, and nothing clips it

## What it sees
The gradient norm against the median of the steps before. It jumps by a factor of 100 while the updates until then were of ordinary
size (under a twentieth of the weights), nothing clips, and the loss shoots up or turns non-finite. From step 5.

## Why it matters
One such step undoes hundreds of good ones, or ends the run in NaN.

## Looks like
A loss that falls nicely, then leaps, in recurrent or very deep networks most of all.

## Example
    loss.backward()
    optimizer.step()

## Use instead
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

## Confirm it
The script runs again with gradients clipped to the median norm of its calm steps. Confirmed when the loss then ends clearly lower.

## False alarms
Runs that clip, norms that vary a lot without harm to the loss, the first steps of a run, and an LR that is too high from the
beginning (its updates are large long before the jump).

## References
Pascanu et al., On the difficulty of training recurrent neural networks (2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.protocol import sites_of, update_ratios
from sawbones.stats.series import finite

NEEDS = ("steps", "losses", "backward")
EXPLAINS = ("loop.loss-spike", "loss.unstable-log", "optimizer.lr-too-high")
EXPERIMENT = "clip_on"
JUMP, CALM, ORDINARY = 100.0, 5, 0.05


def check(run: Run) -> Iterator[Finding]:
    norms, losses = run.steps["grad_norm"], run.losses
    if run.of_kind("clip") or len(norms) < 2 * CALM or run.of_kind("scale"):
        return
    at = _jump(norms)
    if at is None:
        return
    ratios = update_ratios(run)[:at]
    if len(finite(ratios)) and float(np.nanmedian(ratios)) > ORDINARY:
        return
    before = finite(losses[:at])
    after = losses[at : at + 20]
    if len(before) < CALM:
        return
    level = float(np.median(before[-20:]))
    hurt = bool(np.any(~np.isfinite(after))) or float(np.max(finite(after), initial=-math.inf)) > level + 1.0 * max(
        abs(level), 1e-12
    )
    if not hurt:
        return
    usual = float(np.median(finite(norms[:at])[-20:]))
    backward = next((e for e in run.of_kind("backward") if e.step == at), run.of_kind("backward")[0])
    worst = float(norms[at])
    yield Finding(
        "loop.exploding-gradients",
        "suspected",
        0.65,
        f"The gradient norm leaps from {usual:.3g} to {worst:.3g} at step {at}, and nothing clips it",
        sites_of(backward),
        (
            Evidence(f"gradient norm {worst:.3g} at step {at}, {usual:.3g} before", "steps", (at,), worst, usual),
            Evidence(
                f"loss {level:.4g} before, up to {np.max(finite(after), initial=level):.4g} after", "losses", (at,), None, level
            ),
        ),
        Fix(
            f"Clip: torch.nn.utils.clip_grad_norm_(model.parameters(), {usual:.1g}) between backward() and step().",
            insert_after="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        ),
        params={"max_norm": usual},
    )


def _jump(norms: np.ndarray) -> int | None:
    for i in range(CALM, len(norms)):
        before = finite(norms[max(0, i - 20) : i])
        if len(before) >= CALM and (not math.isfinite(norms[i]) or norms[i] > JUMP * max(float(np.median(before)), 1e-12)):
            return i if math.isfinite(norms[i]) else None
    return None
