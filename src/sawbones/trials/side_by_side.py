"""The loss of a run and of the same run under a remedy, read over the steps that both took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.evidence.limits import trials as limits
from sawbones.schema import Run
from sawbones.stats.loss_curve import loss_curve
from sawbones.stats.series import end_level, finite, start_level
from sawbones.trials.bench import Bench, ChildFailed
from sawbones.trials.child import Remedy

MOST_CURVES = 3  # beside the run itself, in one picture
FURTHER = 2  # more runs, beyond the one that helped
ENOUGH = 4  # steps; medians of fewer say nothing


@dataclass(frozen=True)
class Pair:
    steps: int
    begin: float  # level of the first losses without the remedy
    was: float  # where the loss ended without the remedy
    now: float  # where it ended with it
    sigmas: float = 0.0  # mean difference over the last fifth, in standard errors
    chance: float = 0.0  # that of a coin to be lower at as many steps of the last fifth

    @property
    def is_short(self) -> bool:
        return self.steps < ENOUGH or not math.isfinite(self.begin)

    def lower(self, share: float) -> bool:
        """Ends lower by `share` of where it began, at more steps than chance gives, or finite where
        it was not.
        """
        if not math.isfinite(self.now) or not math.isfinite(self.was):
            return math.isfinite(self.now)
        gained = self.was - self.now > share * max(abs(self.begin), 1e-12)
        return gained and limits.BY_CHANCE.kept_by(self.chance)

    def cured(self, share: float) -> bool:
        """Lower by that much, and no higher than it began: a run that climbs more slowly is as ill
        as before.
        """
        return self.lower(share) and self.now <= self.begin

    @property
    def is_better(self) -> bool:
        """Lower at the same steps by more than chance gives, by enough to matter, and no higher
        than it began: a run that climbs more slowly is as ill as before.
        """
        if self.now > self.begin:
            return False
        if not math.isfinite(self.was):
            return math.isfinite(self.now)
        return limits.HEALED.reached_by(self.sigmas) and self.lower(limits.WORTH.value)

    def __str__(self) -> str:
        return (
            f"the loss ends at {self.now:.4g} instead of {self.was:.4g} after {self.steps} "
            f"steps (it began at {self.begin:.4g})"
        )


def compare(run: Run, cured: Run) -> Pair:
    steps = min(run.num_steps, cured.num_steps)
    known = finite(run.losses[:steps])
    begin = start_level(known) if len(known) else math.nan
    was, now = run.losses[:steps], cured.losses[:steps]
    with np.errstate(invalid="ignore"):  # both may be infinite: no gain to speak of
        gains = was - now
    return Pair(steps, begin, end_level(was), end_level(now), _sigmas(gains), _chance(gains))


def best_rate(bench: Bench, run: Run, factor: float, cured: Run, times: float) -> tuple[float, Run]:
    """From a factor of the learning rate that helps on to the next, as long as that ends clearly
    lower still: the factor, and the run with it.
    """
    for _ in range(FURTHER):
        if bench.seconds_left < 2 * run.seconds:
            break
        try:
            remedy = Remedy("learning_rate", {"factor": factor * times})
            other = bench.rerun([remedy], max_steps=run.num_steps)
        except ChildFailed:
            break
        if not compare(cured, other).is_better:
            break
        factor, cured = factor * times, other
    return factor, cured


def with_curves(run: Run, reruns: Sequence[tuple[Sequence[Remedy], Run]]) -> dict[str, Any]:
    """The losses of the run and of what was run again, for the picture of the experiment."""
    known = [(remedies, other) for remedies, other in reruns if remedies and other.num_steps > 1]
    if run.num_steps < 2 or not known:
        return {}
    curves = [loss_curve(run, "as it is")]
    curves += [loss_curve(other, _called(remedies)) for remedies, other in known[:MOST_CURVES]]
    return {"curves": curves}


def _called(remedies: Sequence[Remedy]) -> str:
    """`lr scaled (factor 0.1)`: the remedies by name, with their plain settings."""
    told = []
    for remedy in remedies:
        given = ", ".join(
            f"{name.replace('_', ' ')} {value:.4g}"
            for name, value in remedy.params.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        )
        told.append(remedy.name.replace("_", " ") + (f" ({given})" if given else ""))
    return "with " + " and ".join(told)


def _sigmas(gains: npt.NDArray[np.float64]) -> float:
    late = finite(gains[-max(ENOUGH, len(gains) // 5) :])
    if len(late) < ENOUGH:
        return 0.0
    error = float(late.std(ddof=1)) / math.sqrt(len(late))
    mean = float(late.mean())
    return mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0


def _chance(gains: npt.NDArray[np.float64]) -> float:
    """Of one loss being the lower one at as many of the last steps, were both runs alike. Where a
    few far losses or many zeros make a median, the steps themselves do not agree.
    """
    late = gains[-max(ENOUGH, len(gains) // 5) :]
    late = late[~np.isnan(late) & (late != 0)]
    n, k = len(late), int((late > 0).sum())
    return float(sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n)
