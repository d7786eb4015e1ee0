"""Two distributions compared from their counts, so that a comparison costs the same for a thousand
rows as for a billion.

Counts are per bin; `reference` and `current` have the same bins. Effect sizes come first: with a
million rows every difference is "significant", so a p-value alone never decides anything here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]


def shares(counts: Counts) -> Counts:
    total = counts.sum()
    return counts / total if total > 0 else np.zeros_like(counts)


def psi(reference: Counts, current: Counts) -> float:
    """Population stability index, less what sampling noise alone adds, (bins - 1)(1/n + 1/m); never
    below 0.
    """
    n, m = reference.sum(), current.sum()
    used = (reference + current) > 0
    bins = int(used.sum())
    if n == 0 or m == 0 or bins < 2:
        return 0.0
    # Half a row in every bin: an empty bin must not make the index infinite.
    p = (reference[used] + 0.5) / (n + 0.5 * bins)
    q = (current[used] + 0.5) / (m + 0.5 * bins)
    raw = float(((p - q) * np.log(p / q)).sum())
    return max(0.0, float(raw - (bins - 1) * (1 / n + 1 / m)))


def ks(reference: Counts, current: Counts) -> float:
    """Largest distance of the two cumulated shares over ordered bins; at most the exact one, short
    of it by less than a bin.
    """
    if reference.sum() == 0 or current.sum() == 0:
        return 0.0
    return float(np.abs(np.cumsum(shares(reference)) - np.cumsum(shares(current))).max())


def js(reference: Counts, current: Counts) -> float:
    """Jensen-Shannon distance, base 2: 0 equal, 1 disjoint."""
    p, q = shares(reference), shares(current)
    if p.sum() == 0 or q.sum() == 0:
        return 0.0
    middle = (p + q) / 2
    return math.sqrt(max(0.0, (_kl(p, middle) + _kl(q, middle)) / 2))


def _kl(p: Counts, q: Counts) -> float:
    used = p > 0
    return float((p[used] * np.log2(p[used] / q[used])).sum())


def total_variation(reference: Counts, current: Counts) -> float:
    """Share of rows that would have to change their bin."""
    return float(np.abs(shares(reference) - shares(current)).sum() / 2)


def ks_p(distance: float, n: float, m: float) -> float:
    """Asymptotic p-value of a two-sample Kolmogorov-Smirnov distance."""
    if n <= 0 or m <= 0:
        return 1.0
    root = math.sqrt(n * m / (n + m))
    z = (root + 0.12 + 0.11 / root) * distance
    if z < 0.2:
        return 1.0
    total = sum((-1) ** (k - 1) * math.exp(-2 * k * k * z * z) for k in range(1, 101))
    return float(min(1.0, max(0.0, 2 * total)))


def homogeneity_p(reference: Counts, current: Counts) -> float:
    """p-value of the chi-squared test that both come from one distribution; bins with few rows are
    pooled.
    """
    n, m = reference.sum(), current.sum()
    if n == 0 or m == 0:
        return 1.0
    expected = (reference + current) * min(n, m) / (n + m)
    small = expected < 5
    r = np.append(reference[~small], reference[small].sum())
    c = np.append(current[~small], current[small].sum())
    used = (r + c) > 0
    r, c = r[used], c[used]
    if len(r) < 2:
        return 1.0
    pooled = (r + c) / (n + m)
    statistic = float(
        (((r - n * pooled) ** 2) / (n * pooled) + ((c - m * pooled) ** 2) / (m * pooled)).sum()
    )
    return chi_squared_tail(statistic, len(r) - 1)


def chi_squared_tail(statistic: float, freedom: int) -> float:
    """Wilson and Hilferty's normal form, within a few per cent of the exact tail wherever a
    decision is near.
    """
    if freedom < 1 or statistic <= 0:
        return 1.0
    spread = 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


def proportion_p(hits: float, n: float, other_hits: float, m: float) -> float:
    """Two-sided p-value that two shares are equal."""
    if n <= 0 or m <= 0:
        return 1.0
    pooled = (hits + other_hits) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m)
    if variance <= 0:
        return 1.0
    return math.erfc(abs(hits / n - other_hits / m) / math.sqrt(2 * variance))


def mean_p(
    mean: float, variance: float, n: float, other_mean: float, other_variance: float, m: float
) -> float:
    """Two-sided p-value that two means are equal, for samples large enough that the mean is
    normal.
    """
    if n < 2 or m < 2:
        return 1.0
    error = variance / n + other_variance / m
    if error <= 0:
        return 1.0 if mean == other_mean else 0.0
    return math.erfc(abs(mean - other_mean) / math.sqrt(2 * error))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg: p-values corrected for having looked at all of them."""
    count = len(p_values)
    order = np.argsort(p_values)
    found = np.empty(count)
    smallest = 1.0
    for rank in range(count, 0, -1):
        index = order[rank - 1]
        smallest = min(smallest, p_values[index] * count / rank)
        found[index] = smallest
    return [float(p) for p in found]


def ordered_auc(positive: Counts, negative: Counts) -> float:
    """AUC of ordered bins as a score, ties counted half; below 0.5 the other direction is meant."""
    n, m = positive.sum(), negative.sum()
    if n == 0 or m == 0:
        return 0.5
    below = np.cumsum(negative) - negative
    area = float((positive * (below + negative / 2)).sum() / (n * m))
    return max(area, 1 - area)


def encoded_auc(
    fit_positive: Counts, fit_negative: Counts, positive: Counts, negative: Counts
) -> float:
    """AUC on one part of the data of bins ranked by their rate on another: it needs no order, and
    many bins cannot flatter it.
    """
    n, m = fit_positive.sum(), fit_negative.sum()
    if n == 0 or m == 0 or positive.sum() == 0 or negative.sum() == 0:
        return 0.5
    prior = n / (n + m)
    rate = (fit_positive + prior) / (fit_positive + fit_negative + 1)
    # Bins of equal rate are ties: what was never seen in the fit part all gets the prior.
    levels, place = np.unique(rate, return_inverse=True)
    merged_positive, merged_negative = np.zeros(len(levels)), np.zeros(len(levels))
    np.add.at(merged_positive, place, positive)
    np.add.at(merged_negative, place, negative)
    below = np.cumsum(merged_negative) - merged_negative
    return float(
        (merged_positive * (below + merged_negative / 2)).sum() / (positive.sum() * negative.sum())
    )


def encoded_r2(
    fit_count: Counts, fit_sum: Counts, count: Counts, total: Counts, squares: Counts
) -> float:
    """R2 on one part of the data of bin means taken from another."""
    n = count.sum()
    if n == 0 or fit_count.sum() == 0:
        return 0.0
    prior = fit_sum.sum() / fit_count.sum()
    mean = (fit_sum + prior) / (fit_count + 1)
    spread = squares.sum() - total.sum() ** 2 / n
    if spread <= 0:
        return 0.0
    error = float((squares - 2 * mean * total + mean * mean * count).sum())
    return float(1 - error / spread)


def wilson(hits: float, n: float, z: float = 1.96) -> tuple[float, float]:
    """Confidence interval of a share."""
    if n <= 0:
        return 0.0, 1.0
    p = hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
