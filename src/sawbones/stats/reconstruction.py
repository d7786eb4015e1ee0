"""Losses whose targets are what the model is given: how they end, beside the best answer that is
the same for every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sawbones.schema import DeepStep, LossCall, Run, Site
from sawbones.stats.series import finite
from sawbones.trace.graph import StepGraph


@dataclass(frozen=True)
class Reconstruction:
    site: Site | None
    losses: np.ndarray[tuple[int], np.dtype[np.float64]]  # of the term, at every step that kept it
    same_for_all: float  # what the mean of all rows scores


def reconstructions(run: Run) -> Iterator[Reconstruction]:
    """Averaged over elements, at the same line on every deep step."""
    seen: dict[Site | None, list[LossCall]] = {}
    for deep in run.deep:
        for call in deep.losses:
            if _is_of_input(deep, call):
                seen.setdefault(call.site, []).append(call)
    for site, calls in seen.items():
        scores = [c.facts.same_for_all for c in calls if c.facts.same_for_all]
        plain = all(c.facts.effective_reduction == "mean" for c in calls)
        if site is None or not plain or len(calls) < len(run.deep) or not scores:
            continue
        events = [e for e in run.of_kind("loss") if e.site == site and e.phase == "train"]
        values = finite([float(e.data.get("value") or np.nan) for e in events])
        yield Reconstruction(site, values, float(np.median(scores)))


def _is_of_input(deep: DeepStep, call: LossCall) -> bool:
    """The target is, in another form at most, something that the answer is made of."""
    if call.target is None or call.facts.target_requires_grad or call.facts.has_weight:
        return False
    graph = StepGraph(deep, with_no_grad=True)
    origin = graph.origin(call.target, call.op)[0].id
    made = graph.behind(call.input, call.op)
    return any(
        origin in (v.id, graph.origin(v, op.index)[0].id)
        for op in made
        for v in op.inputs
        if not v.requires_grad
    )
