"""Which features may give the label away, from the sample alone: only those are measured on all
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.audits.case import MOST_CLASSES, Case
from sawbones.audits.engine.split import Split
from sawbones.stats.distributions import encoded_auc, encoded_r2

MARGIN = (
    0.1  # below the threshold; on the rows that it is fitted on, a feature looks better than it is
)
ENOUGH = 100  # sampled rows of a class: its AUC is within the margin then


def suspects(case: Case, split: Split) -> list[str]:
    """Features whose own score or correlation in the sample is near its threshold; all of them
    where the sample cannot tell.
    """
    names = [*case.numbers, *case.categories]
    label = split.sample.get(str(case.options.label))
    if label is None or any(n not in split.sample for n in names):
        return names
    limits = case.thresholds
    if case.label_kind == "quantity":
        least, targets = limits.r2 - MARGIN, [label]
    else:
        code = np.unique(label.astype(str), return_inverse=True)[1]
        counts = np.bincount(code)
        if not 2 <= len(counts) <= MOST_CLASSES or counts.min() < min(ENOUGH, len(label) // 4):
            return names
        least, targets = (
            limits.auc - MARGIN,
            [code == c for c in range(1 if len(counts) == 2 else len(counts))],
        )
    found = []
    for name in names:
        place = _bins(case, split, name)
        if max(_score(place, target) for target in targets) >= least or (
            name in case.numbers
            and _correlation(split.sample[name], label) >= limits.correlation - MARGIN
        ):
            found.append(name)
    return found


def _bins(case: Case, split: Split, name: str) -> Any:
    """Number of the bin of each sampled row; the missing are one of their own."""
    values = split.sample[name]
    if name in case.numbers:
        return np.where(
            np.isfinite(values), np.searchsorted(case.cuts[name].edges, values, side="left") + 1, 0
        )
    code: dict[Any, int] = {}
    return np.array([code.setdefault(value, len(code)) for value in values.tolist()])


def _score(place: Any, target: Any) -> float:
    """AUC where the target is true or false, R2 where it is a number."""
    if target.dtype == bool:
        total = np.bincount(place).astype(np.float64)
        positive = np.asarray(
            np.bincount(place, weights=target, minlength=len(total)), dtype=np.float64
        )
        return encoded_auc(positive, total - positive, positive, total - positive)
    known = np.isfinite(target)
    place, target = place[known], target[known]
    weights = (np.ones(len(place)), target, target * target)
    count, sums, squares = (
        np.asarray(np.bincount(place, weights=w), dtype=np.float64) for w in weights
    )
    return encoded_r2(count, sums, count, sums, squares)


def _correlation(values: Any, label: Any) -> float:
    if label.dtype == object:
        return 0.0
    known = np.isfinite(values) & np.isfinite(label)
    x, y = values[known], label[known]
    if len(x) < 2 or not x.std() or not y.std():
        return 0.0
    return float(abs(np.corrcoef(x, y)[0, 1]))
