"""Clip the gradients between backward and step, at the norm that calmed the run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.fixing.editing import before
from sawbones.fixing.loop_parts import parameters_text
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    optimizer = case.optimizer()
    if optimizer is None:
        return
    source = optimizer.source
    clip, imports = spelled(source, "torch.nn.utils.clip_grad_norm_")
    parameters = parameters_text(case, optimizer)
    line = f"{clip}({parameters}, max_norm={_norm(case):.3g})"
    edits = (*imports, before(source, optimizer.statement, line))
    yield Change(f"Clip the gradients before the step: {line}.", edits)


def _norm(case: Case) -> float:
    """Of the trial that calmed the run; without one, the median of its calm steps."""
    verdict = case.finding.verdict
    if verdict is not None and verdict.details.get("max_norm"):
        return float(verdict.details["max_norm"])
    norms = case.run.steps["grad_norm"]
    calm = norms[np.isfinite(norms) & (norms > 0)]
    return float(np.median(calm[: max(3, len(calm) // 2)])) if len(calm) else 1.0
