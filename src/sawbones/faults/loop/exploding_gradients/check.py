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
the loss then ends clearly lower.

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

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.divergence import gradient_leaps, recent_ratio
from sawbones.stats.protocol import sites_of, update_ratios

NEEDS = ("steps", "losses", "backward")
EXPLAINS = ("loop.loss-spike", "loss.unstable-log", "optimizer.lr-too-high")
EXPERIMENT = "clip_on"
LEAP, PLAIN_LEAP, FAR = 4.0, 10.0, 50.0
ORDINARY = 0.05


def check(run: Run) -> Iterator[Finding]:
    norms, losses = run.steps["grad_norm"], run.losses
    if (
        len(norms) < 10
        or run.of_kind("scale")
        or any(_limits(e.data.get("max_norm")) for e in run.of_kind("clip"))
    ):
        return
    ratios = update_ratios(run)
    leaps = [
        leap
        for leap in gradient_leaps(norms, losses, LEAP)
        if not recent_ratio(ratios, leap.step) > ORDINARY
    ]
    if not leaps:
        return
    leap = max(leaps, key=lambda found: found.factor)
    plain = leap.factor >= PLAIN_LEAP or leap.worst > FAR * max(abs(leap.level), 1e-12)
    backward = next(
        (e for e in run.of_kind("backward") if e.step == leap.step), run.of_kind("backward")[0]
    )
    after = f"up to {leap.worst:.4g}" if math.isfinite(leap.worst) else "not finite"
    yield Finding(
        "loop.exploding-gradients",
        "likely" if plain else "suspected",
        0.88 if plain else 0.65,
        (
            f"The gradient norm leaps from {leap.usual:.3g} to {leap.norm:.3g} at step "
            f"{leap.step}, and nothing clips it"
        ),
        sites_of(backward),
        (
            Evidence(
                (
                    f"gradient norm {leap.norm:.3g} at step {leap.step}, {leap.usual:.3g} "
                    f"before, at a loss of {losses[leap.step]:.4g}"
                ),
                "steps",
                (leap.step,),
                leap.norm,
                leap.usual,
            ),
            Evidence(
                f"loss {leap.level:.4g} before, {after} in the next steps",
                "losses",
                (leap.step + 1,),
                None,
                leap.level,
            ),
        ),
        Fix(
            (
                f"Clip: torch.nn.utils.clip_grad_norm_(model.parameters(), {leap.usual:.1g}) "
                "between backward() and step()."
            ),
            insert_after="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        ),
        params={"max_norm": leap.usual},
    )


def _limits(max_norm: object) -> bool:
    return not isinstance(max_norm, (int, float)) or math.isfinite(max_norm)
