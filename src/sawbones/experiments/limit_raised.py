"""Run the script again with the number at which texts are cut made larger.

Confirmed when rows then get longer, so that texts really were cut, and what they hold now tells labels of samples not fitted to,
which it did not before. Refuted when no number that could be the limit makes rows longer, or longer rows tell no more. The loss
does not decide: longer rows are easier to memorise, too.
"""

from __future__ import annotations

from typing import Any

from sawbones.experiments.bench import Bench
from sawbones.experiments.child import Remedy
from sawbones.schema import Finding, Run, Verdict

STEPS = 80  # enough for the samples that the label probe wants
_REMEDY = "sawbones.experiments.number_changed"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    limit, places = int(finding.params["limit"]), list(finding.params["numbers"])
    for place in places:
        longer = _with(bench, place, min(run.num_steps, STEPS) if len(places) == 1 else 2)
        width = _width(longer)
        if width <= limit:
            continue
        if len(places) > 1:
            longer = _with(bench, place, min(run.num_steps, STEPS))
        probe = (longer.facts.get("label_probe") or {}).get("batches")
        if probe is None:
            break
        score, chance = float(probe["score"]), float(probe["chance"])
        tells = probe["z"] >= 4.0 and score - chance >= 0.1 * (1.0 - chance)
        text = (
            f"with {place['new']} for {place['old']} rows have {width} tokens and tell {score:.0%} of labels (chance {chance:.0%})"
        )
        return Verdict("limit_raised", "confirmed" if tells else "refuted", text, chance, score)
    return Verdict("limit_raised", "refuted", "no number of the source was found that makes rows longer")


def _with(bench: Bench, place: dict[str, Any], steps: int) -> Run:
    return bench.rerun([Remedy(_REMEDY, place)], max_steps=steps, deep_steps=(0,), journal=True, batch_samples=40)


def _width(run: Run) -> int:
    return max((t.shape[-1] for deep in run.deep for t in deep.tokens if t.role == "tokens" and len(t.shape) == 2), default=0)
