"""How long the steps of a run sleep in calls on a store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.schema import Run

LATEST = 200  # steps that are judged by themselves, too: a store may begin to stall late
LEAST_MS = 1.0  # less in one step is not a stall


@dataclass(frozen=True)
class Stalls:
    share: float  # of the time of these steps, Sawbones' own work left out
    stalled: int  # steps that sleep
    steps: int
    stall_ms: float  # median of those that do
    step_ms: float  # median of all


def stalled_ms(run: Run) -> npt.NDArray[np.float64]:
    """One number per row of run.steps: what its step slept in calls on a store."""
    known = dict(run.standing.stalled) if run.standing is not None else {}
    return np.array([known.get(int(step), 0.0) for step in run.steps["step"]], np.float64)


def stalls(run: Run, least: int) -> Stalls | None:
    """Over the steps that Sawbones did not slow down, all or the latest, whichever sleep more; None
    when there are fewer than `least`.
    """
    standing = run.standing
    if standing is None or not standing.sees_calls:
        return None
    number, spent, deep, own = (run.steps[n] for n in ("step", "step_ms", "deep", "watch_ms"))
    plain = (deep == 0) & np.isfinite(spent) & (spent > 0) & (number >= standing.first)
    plain &= ~np.concatenate([[False], deep[:-1] > 0])  # what follows a deep step still pays for it
    if plain.sum() < least:
        return None
    slept = np.minimum(stalled_ms(run)[plain], spent[plain])
    took = np.maximum(spent[plain] - np.nan_to_num(own[plain]), slept)
    parts = [_over(slept, took), _over(slept[-LATEST:], took[-LATEST:])]
    return max(parts, key=lambda part: part.share)


def _over(slept: npt.NDArray[np.float64], took: npt.NDArray[np.float64]) -> Stalls:
    those = slept[slept >= LEAST_MS]
    return Stalls(
        float(slept.sum() / max(took.sum(), 1e-9)),
        len(those),
        len(slept),
        float(np.median(those)) if len(those) else 0.0,
        float(np.median(took)),
    )
