"""Run the script again with every learning rate times 0.1, from the same seed; times 0.01 when a
tenth is still too much, and on from a factor that helps as long as the next one helps clearly more.

Confirmed when the loss then ends clearly lower (by 15 % of where it began, or finite where it was
not) and has come down at all; refuted when neither does better. Medians of the last fifth are
compared, or means where a part of the batches costs far more, never single steps. Under plain SGD a loss that is summed is healed in the same way: where
it was not measured that the loss is a mean, the rate is likely and not proven.
"""

from __future__ import annotations

import math

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.divergence import end_cost
from sawbones.stats.loss_calls import carrying
from sawbones.stats.series import finite
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import best_rate

NAME = "learning_rate_tenth"
FACTORS = (0.1, 0.01)
CLEARLY = 0.15


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    if not len(finite(run.losses)):
        return Verdict(NAME, "open", "no finite loss to compare with")
    begin = float(finite(run.losses)[0])
    size = max(abs(begin), 1e-12)
    tried: list[str] = []
    was = now = math.nan
    for factor in FACTORS:
        cured = bench.rerun([Remedy("learning_rate", {"factor": factor})], max_steps=run.num_steps)
        steps = min(cured.num_steps, run.num_steps)
        if steps < 4:
            return Verdict(NAME, "open", "too few steps to compare")
        was, now = end_cost(run.losses[:steps]), end_cost(cured.losses[:steps])
        tried.append(_told(factor, now, was))
        behaves = math.isfinite(now) and now < begin - 0.02 * size
        if behaves and (not math.isfinite(was) or now < was - CLEARLY * size):
            best, cured = best_rate(bench, run, factor, cured, 0.1)
            now = end_cost(cured.losses[:steps])
            return Verdict(
                NAME,
                "confirmed",
                f"{_told(best, now, was)} (it began at {begin:.4g})",
                was,
                now,
                details={"factor": best, "narrows": not scale_is_known(run)},
            )
        if finding.status != "likely":
            break  # a weak suspicion gets one try
    return Verdict(NAME, "refuted", "; ".join(tried), was, now)


def _told(factor: float, now: float, was: float) -> str:
    return f"with {factor:g} of the learning rate the loss ends at {now:.4g} instead of {was:.4g}"


def scale_is_known(run: Run) -> bool:
    """The loss was seen to be a mean, or the optimizer steps alike whatever its scale."""
    plain = any({"momentum", "nesterov"} <= set(o.defaults) for o in run.optimizers)
    return not plain or any(seen.facts.effective_reduction == "mean" for seen in carrying(run))
