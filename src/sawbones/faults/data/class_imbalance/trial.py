"""Run the script again with classes weighed by the inverse of their frequency.

Confirmed when at least a third of the rare classes' samples are then found at the end, and they are
named far less often where they are not the truth; refuted when fewer than a tenth are.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.samples import Samples
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "classes_weighed"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("classes_weighed")], max_steps=run.num_steps, journal=True)
    classes = (cured.samples or Samples()).predictions.classes
    rows = [classes[label] for label in finding.params.get("rare") or () if label in classes]
    num, found = sum(r.wanted for r in rows), sum(r.right for r in rows)
    if not num:
        return Verdict(NAME, "open", "no prediction was recorded in the second run")
    recall = found / num
    others = sum(r.wanted for r in classes.values()) - num
    wrongly = max(sum(r.given for r in rows) - found, 0) / max(others, 1)
    text = (
        f"with classes weighed by frequency {found} of {num} samples of rare classes are "
        f"found ({recall:.0%})"
    )
    outcome = (
        "confirmed" if recall > max(0.33, 2.0 * wrongly) else "refuted" if recall < 0.1 else "open"
    )
    return Verdict(NAME, outcome, text, 0.0, recall)
