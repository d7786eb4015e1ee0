"""Run the script again with the number at which texts are cut made larger.

Confirmed when rows then get longer, so that texts really were cut, and what they hold now tells
labels of samples not fitted to, which it did not before; or, in a language model, when they then
differ in length and end in one and the same id. Refuted when no number that could be the limit
makes rows longer, or longer rows tell no more. The loss does not decide: longer rows are easier to
memorise, too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.samples import Samples, TokenRows, TokenTargets
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "limit_raised"
STEPS = 80  # enough for the samples that the label probe wants
_REMEDY = "sawbones.trials.number_changed"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    limit, places = int(finding.params["limit"]), list(finding.params["numbers"])
    for place in places:
        longer = _with(bench, place, min(run.num_steps, STEPS) if len(places) == 1 else 2)
        width = _width(longer)
        if width <= limit:
            continue
        if len(places) > 1:
            longer = _with(bench, place, min(run.num_steps, STEPS))
        if (closed := _closed(longer)) is not None:
            text = (
                f"with {place['new']} for {place['old']} rows have up to {width} tokens, and "
                f"{closed:.0%} of them end in one id"
            )
            return Verdict(NAME, "confirmed" if closed >= 0.9 else "refuted", text, 0.0, closed)
        probe = longer.label_probe.batches if longer.label_probe else None
        if probe is None:
            break
        score, chance = probe.score, probe.chance
        tells = probe.z >= 4.0 and score - chance >= 0.1 * (1.0 - chance)
        text = (
            f"with {place['new']} for {place['old']} rows have {width} tokens and tell "
            f"{score:.0%} of labels (chance {chance:.0%})"
        )
        return Verdict(NAME, "confirmed" if tells else "refuted", text, chance, score)
    return Verdict(NAME, "refuted", "no number of the source was found that makes rows longer")


def _with(bench: Bench, place: dict[str, Any], steps: int) -> Run:
    return bench.rerun(
        [Remedy(_REMEDY, place)], max_steps=steps, deep_steps=(0,), journal=True, batch_samples=40
    )


def _closed(run: Run) -> float | None:
    """Of a language model: which part of the texts, where they differ in length, ends in the
    commonest last target.
    """
    rows = (run.samples or Samples()).rows or TokenRows()
    targets = rows.targets or TokenTargets()
    if targets.copies < 0.9:
        return None
    below, at = targets.last_below, targets.last_at_limit
    most = max((Counter(below.top) + Counter(at.top)).values(), default=0)
    total = below.all + at.all
    return most / total if total and len(set(rows.lengths)) >= 3 else 0.0


def _width(run: Run) -> int:
    return max(
        (
            t.shape[-1]
            for deep in run.deep
            for t in deep.tokens
            if t.role == "tokens" and len(t.shape) == 2
        ),
        default=0,
    )
