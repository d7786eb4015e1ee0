"""Gradient norm that grows without bound, and nothing clips it

## What it sees
Which comes first, the gradient or the loss. The gradient norm leaps to four times the median of the
steps before while the loss is still an ordinary one and the updates until then were of ordinary
size (under a twentieth of the weights); within six steps the loss shoots up or turns non-finite;
nothing clips. From step 1.

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
The script runs again with gradients clipped to the median norm of its calm steps. Confirmed when
the loss then ends clearly lower, and no higher than it began: smaller steps up the same slope are
no cure.

## False alarms
Runs that clip (a limit of infinity only reads the norm), norms that vary a lot without harm to the
loss, a bad batch (its loss stands out together with its gradient), and an LR that is too high
(large updates long before, gradient and loss grow together).

## References
Pascanu et al., On the difficulty of training recurrent neural networks (2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.divergence import gradient_leaps, recent_ratio
from sawbones.stats.protocol import update_ratios
from sawbones.trace.locate import locate

NEEDS = ("steps", "losses", "backward")
EXPLAINS = (
    "loop.loss-spike",
    "loss.unstable-log",
    "loss.value-range",  # of values that are no numbers any more
    "optimizer.lr-too-high",
)
EXPERIMENT = "clip_on"
MIN_STEPS = 10  # a leap needs steps before it to stand out of


def check(run: Run) -> Iterator[Finding]:
    norms, losses = run.steps["grad_norm"], run.losses
    if len(norms) < MIN_STEPS:
        raise NothingToJudge(f"fewer than {MIN_STEPS} optimizer steps were taken")
    if run.of_kind("scale"):
        raise NothingToJudge(
            "the gradients carry a loss scale, and its scaler skips what overflows"
        )
    if any(_is_limit(e.data.get("max_norm")) for e in run.of_kind("clip")):
        return
    ratios = update_ratios(run)
    leaps = [
        leap
        for leap in gradient_leaps(norms, losses, 1)
        if limits.GRADIENT_LEAP.suspected_by(leap.factor)
        and not limits.ORDINARY_UPDATE.passed_by(recent_ratio(ratios, leap.step))
    ]
    if not leaps:
        return
    leap = max(leaps, key=lambda found: found.factor)
    backward = next(
        (e for e in run.of_kind("backward") if e.step == leap.step), run.of_kind("backward")[0]
    )
    after = f"up to {leap.worst:.4g}" if math.isfinite(leap.worst) else "not finite"
    leapt = (
        f"gradient norm {leap.norm:.3g} at step {leap.step}, {leap.usual:.3g} "
        f"before, at a loss of {losses[leap.step]:.4g}"
    )
    left = f"loss {leap.level:.4g} before, {after} in the next steps"
    size = max(abs(leap.level), TINY)
    # Either is enough to be clear: what the loss did after it, or else the leap itself.
    if limits.LOSS_THROWN.passed_by(leap.worst / size):
        readings = (
            context(
                leapt, signal="steps", steps=(leap.step,), value=leap.norm, expected=leap.usual
            ),
            compared(
                left,
                leap.worst,
                limits.LOSS_THROWN,
                against=size,
                expected=leap.level,
                signal="losses",
                steps=(leap.step + 1,),
            ),
        )
    else:
        readings = (
            compared(
                leapt,
                leap.norm,
                limits.GRADIENT_LEAP,
                against=leap.usual,
                signal="steps",
                steps=(leap.step,),
            ),
            context(left, signal="losses", steps=(leap.step + 1,), expected=leap.level),
        )
    yield finding(
        f"The gradient norm leaps from {leap.usual:.3g} to {leap.norm:.3g} at step "
        f"{leap.step}, and nothing clips it",
        locate(backward),
        readings,
        Fix(
            f"Clip: torch.nn.utils.clip_grad_norm_(model.parameters(), {leap.usual:.1g}) "
            "between backward() and step()."
        ),
        params={"max_norm": leap.usual},
    )


def _is_limit(max_norm: object) -> bool:
    return not isinstance(max_norm, (int, float)) or math.isfinite(max_norm)
