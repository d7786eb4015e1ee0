"""Small boosted models on a sample: what a feature is worth among the others, and what the order of
time is worth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.audits.case import Case
from sawbones.audits.engine.split import Split

FloatArray = npt.NDArray[np.float64]
ROUNDS = 40
LEAST_ROWS = 200
MOST_MODEL_ROWS = 10_000


def matrix(case: Case, split: Split) -> tuple[FloatArray, FloatArray, list[str]] | None:
    """(features, label, names) of the split's sample; categories as the rank of their frequency in
    the first split.
    """
    label = case.options.label
    if label is None or label not in split.columns or case.label_kind is None:
        return None
    target = _encoded(case, split, label) if case.label_kind == "class" else split.sample.get(label)
    names = [n for n in [*case.numbers, *case.categories] if n in split.sample]
    if target is None or target.dtype == object or not names:
        return None
    columns = [split.sample[n] if n in case.numbers else _encoded(case, split, n) for n in names]
    if any(c is None or c.dtype == object for c in columns):
        return None
    x = np.stack([np.asarray(c, dtype=np.float64) for c in columns], axis=1)
    known = np.isfinite(target)
    if known.sum() < LEAST_ROWS or len(np.unique(target[known])) < 2:
        return None
    x, y = x[known], np.asarray(target[known], dtype=np.float64)
    return x[:MOST_MODEL_ROWS], y[:MOST_MODEL_ROWS], names


def _encoded(case: Case, split: Split, name: str) -> Any:
    """Numbers for categories, the same on every split; the label's classes by their number where
    they have one.
    """
    first = case.first.sample.get(name)
    values = split.sample.get(name)
    if first is None or values is None:
        return None
    if values.dtype != object:
        return values
    if first.dtype != object:
        return None
    known, counts = np.unique([v for v in first if v is not None], return_counts=True)
    code = {v: i for i, v in enumerate(known[np.argsort(-counts, kind="stable")])}
    return np.array([code.get(v, np.nan) for v in values], dtype=np.float64)


def fit_score(
    x: FloatArray, y: FloatArray, test_x: FloatArray, test_y: FloatArray, kind: str
) -> tuple[float, Any]:
    """AUC (the mean over classes) or R2 on the test part, and the fitted model."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    settings = {
        "max_iter": ROUNDS,
        "max_leaf_nodes": 15,
        "early_stopping": False,
        "random_state": 0,
        "max_bins": 64,
    }
    if kind == "quantity":
        model = HistGradientBoostingRegressor(**settings).fit(x, y)
        return _r2(test_y, model.predict(test_x)), model
    # The most frequent class against the rest: one model instead of one per class and round.
    values, counts = np.unique(y, return_counts=True)
    positive = values[np.argmax(counts)]
    model = HistGradientBoostingClassifier(**settings).fit(x, y == positive)
    return score(model, test_x, test_y == positive, kind), (model, positive)


def score(model: Any, x: FloatArray, y: Any, kind: str) -> float:
    if kind == "quantity":
        return _r2(y, model.predict(x))
    return exact_auc(model.predict_proba(x)[:, 1], y)


def _r2(y: FloatArray, predicted: FloatArray) -> float:
    spread = float(((y - y.mean()) ** 2).sum())
    return 1 - float(((y - predicted) ** 2).sum()) / spread if spread > 0 else 0.0


def exact_auc(scores: FloatArray, positive: Any) -> float:
    n = int(np.sum(positive))
    m = len(scores) - n
    if not n or not m:
        return 0.5
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    _, start, counts = np.unique(ordered, return_index=True, return_counts=True)
    ranks = np.empty(len(scores))
    ranks[order] = np.repeat(start + (counts + 1) / 2, counts)
    return float((ranks[np.asarray(positive, dtype=bool)].sum() - n * (n + 1) / 2) / (n * m))


def drop_one(case: Case, train: Split, test: Split) -> tuple[str, float, float] | None:
    """(feature, score with all, score without it) for the feature that the model leans on most;
    None where no model can be made.

    The candidates come from one fitted model, each column shuffled in turn; only the first is
    fitted without.
    """
    if not case.options.model:
        return None
    made, other = matrix(case, train), matrix(case, test)
    if made is None or other is None or case.label_kind is None or made[0].shape[1] < 2:
        return None
    x, y, names = made
    test_x, test_y = other[0], other[1]
    kind = case.label_kind
    whole, fitted = fit_score(x, y, test_x, test_y, kind)
    limit = case.thresholds.auc if kind == "class" else case.thresholds.r2
    if whole < limit:
        return None
    model, target = (fitted[0], test_y == fitted[1]) if kind == "class" else (fitted, test_y)
    rng = np.random.default_rng(0)
    lost = []
    for column in range(len(names)):
        shuffled = test_x.copy()
        shuffled[:, column] = rng.permutation(shuffled[:, column])
        lost.append(whole - score(model, shuffled, target, kind))
    best = int(np.argmax(lost))
    rest = [c for c in range(len(names)) if c != best]
    without, _ = fit_score(x[:, rest], y, test_x[:, rest], test_y, kind)
    return names[best], whole, without


def time_against_random(
    case: Case, base: Split, other: Split, time: str
) -> tuple[float, float, str] | None:
    """(score of a random split, score of a split by time, its name) over the rows of both splits
    together.
    """
    if not case.options.model:
        return None
    parts = []
    for split in (base, other):
        made, moments = matrix(case, split), split.sample.get(time)
        if made is None or moments is None or moments.dtype == object or case.label_kind is None:
            return None
        label = (
            split.sample[str(case.options.label)]
            if case.label_kind == "quantity"
            else _encoded(case, split, str(case.options.label))
        )
        parts.append((made[0], made[1], moments[np.isfinite(label)][: len(made[0])]))
    x, y, t = (np.concatenate([part[i] for part in parts]) for i in range(3))
    known = np.isfinite(t)
    x, y, t = x[known], y[known], t[known]
    if len(x) < 2 * LEAST_ROWS:
        return None
    held = len(x) // 4
    kind = str(case.label_kind)
    found = []
    for order in (np.random.default_rng(0).permutation(len(x)), np.argsort(t, kind="stable")):
        fit, test = order[:-held], order[-held:]
        if len(np.unique(y[fit])) < 2 or len(np.unique(y[test])) < 2:
            return None
        found.append(fit_score(x[fit], y[fit], x[test], y[test], kind)[0])
    return found[0], found[1], "AUC" if kind == "class" else "R2"
