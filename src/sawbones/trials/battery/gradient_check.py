"""Check the gradients of the script's own autograd functions, layers and loss modules against
finite differences in float64.

Measured: for each such class, at its first call, the slope along every coordinate of a small input
and along several random directions of a large one, from autograd and from differences of the
forward pass. Confirmed when one is off by more than a millionth, beyond what the differences are
good for, the innermost named with its place; refuted when all agree. Open when there is
nothing of the script's own, and for gradients that look meant that way: a forward pass with steps
(straight-through estimators) or the slope times -1 (gradient reversal). A loss that is a plain
function is seen only inside a module.
"""

from __future__ import annotations

from dataclasses import asdict

from sawbones.evidence.limits import gradients as limits
from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.one_off import OwnGradient
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    seen = bench.rerun([Remedy("gradient_check")], max_steps=2)
    rows = [row for row in seen.gradient_check if row.error is not None]
    if not rows:
        return Verdict(
            "gradient_check",
            "open",
            "no autograd function, layer or loss of the script's own could be measured",
        )
    bad = [row for row in rows if not row.kink and limits.GRADIENT_CHECK.passed_by(_beyond(row))]
    if not bad:
        worst = max(row.error or 0.0 for row in rows)
        return Verdict(
            "gradient_check",
            "refuted",
            f"{len(rows)} classes agree with finite differences within {worst:.1g}",
            worst,
            0.0,
        )
    first = bad[0]
    slopes = first.autograd, first.differences
    text = (
        f"{first.cls} ({first.file}:{first.line}): slope {slopes[0]:.6g} from "
        f"autograd, {slopes[1]:.6g} from differences"
    )
    return Verdict(
        "gradient_check",
        "open" if _is_meant(first) else "confirmed",
        text,
        *slopes,
        details=asdict(first),
    )


def _beyond(row: OwnGradient) -> float:
    """The error of the slopes less what is not known of them."""
    return (row.error or 0.0) - row.unsure


def _is_meant(row: OwnGradient) -> bool:
    return row.kind == "function" and (row.passes_through or row.flat)
