"""Run the script again with every gradient turned round before the optimizer's step, or, where
distances are taken for scores, with the scores turned round; of a policy, with the gradients of its
log-probabilities turned round.

Measured: where the loss ends; where the backward pass starts from negative numbers, their negative
is the loss. Confirmed when it then ends lower than it began and lower than before; refuted when it
does not. Of a policy, what the script prints is measured: confirmed when a reward then ends above
where it began and above all that it came to before, refuted when it does not.
"""

from __future__ import annotations

from typing import Any

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.printed_series import Series, is_ahead, rewards
from sawbones.stats.series import end_level, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "gradient_turned"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    params = dict(finding.params)
    if "places" in params:
        return _policy(bench, params, run)
    remedy = Remedy("scores_turned", params) if params else Remedy("gradient_turned")
    turned = bench.rerun([remedy], max_steps=run.num_steps)
    if params and not turned.remedies.get(remedy.name):
        return Verdict(NAME, "open", "the loss was not reached in a second run")
    steps = min(turned.num_steps, run.num_steps)
    if steps < 8:
        return Verdict(NAME, "open", f"{steps} steps are too few to compare")
    # Losses against targets are never negative: a negative start is the negative of one.
    sign = -1 if start_level(run.losses) < 0 else 1
    begin = start_level(sign * turned.losses[:steps])
    was, now = end_level(sign * run.losses[:steps]), end_level(sign * turned.losses[:steps])
    text = (
        f"with the {'scores' if params else 'gradients'} turned round the loss ends at {now:.4g} instead of {was:.4g} "
        f"(it began at {begin:.4g})"
    )
    return Verdict(NAME, "confirmed" if now < min(begin, was) else "refuted", text, was, now)


def _policy(bench: Bench, params: dict[str, Any], run: Run) -> Verdict:
    remedy = Remedy("draws_turned", params)
    # To its end: episodes that last longer take more steps.
    turned = bench.rerun([remedy])
    printed = rewards(bench.log_tail.splitlines())
    known = rewards(text for _, text in run.lines)
    pairs = [(known[label], printed[label]) for label in known if label in printed]
    if not pairs:
        return Verdict(NAME, "open", "a second run printed no reward to compare")
    was, now = max(pairs, key=_ahead_by)
    text = (
        f"with the gradients of the log-probabilities turned round, '{now.label}' ends at "
        f"{now.level:.4g} instead of {was.level:.4g} (it began at {was.values[0]:.4g})"
    )
    healed = is_ahead(now, was) and now.level > was.values[0]
    healed = healed and not any(is_ahead(before, after) for before, after in pairs)
    if healed and not turned.remedies.get(remedy.name):
        return Verdict(NAME, "open", "the log-probabilities were not reached in a second run")
    outcome = "confirmed" if healed else "refuted"
    # That longer is better, the words do not say.
    details = {"narrows": True} if now.of_length else {}
    return Verdict(NAME, outcome, text, was.level, now.level, details=details)


def _ahead_by(pair: tuple[Series, Series]) -> float:
    was, now = pair
    return (now.level - was.level) / max(abs(now.level), abs(was.level), 1e-12)
