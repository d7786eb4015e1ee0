"""Robust readings of a loss or norm series."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def finite(values: npt.ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    return array[np.isfinite(array)]


def first_nonfinite(values: npt.ArrayLike) -> int | None:
    bad = np.flatnonzero(~np.isfinite(np.asarray(values, np.float64)))
    return int(bad[0]) if len(bad) else None


def start_level(values: npt.ArrayLike, share: float = 0.1) -> float:
    """Median of the first tenth (at least three values)."""
    known = finite(values)
    return float(np.median(known[: max(3, int(len(known) * share))])) if len(known) else math.nan


def end_level(values: npt.ArrayLike, share: float = 0.2) -> float:
    """Median of the last fifth (at least three values); inf when the series ends non-finite."""
    array = np.asarray(values, np.float64)
    if not len(array):
        return math.nan
    tail = array[-max(3, int(len(array) * share)) :]
    if np.mean(~np.isfinite(tail)) > 0.5:
        return math.inf
    return float(np.median(tail[np.isfinite(tail)]))


def ends_lower(now: float, was: float, start: float, share: float) -> bool:
    """A remedy's end level against the run's own. Two runs that both solved the task end at other
    tiny numbers: the gain has to be
    worth something beside where the run began, too."""
    if not math.isfinite(now) or not math.isfinite(was):
        return math.isfinite(now)
    return now < was - share * abs(was) and was - now > 0.03 * abs(start)


def noise(values: npt.ArrayLike) -> float:
    """Step-to-step spread: median absolute difference of neighbours, free of any trend."""
    known = finite(values)
    return float(np.median(np.abs(np.diff(known)))) if len(known) > 2 else math.nan


def slope(values: npt.ArrayLike) -> float:
    """Theil-Sen slope per step, on at most 200 evenly chosen points."""
    known = finite(values)
    if len(known) < 3:
        return math.nan
    index = np.unique(np.linspace(0, len(known) - 1, min(len(known), 200)).astype(int))
    x, y = index.astype(np.float64), known[index]
    i, j = np.triu_indices(len(x), 1)
    return float(np.median((y[j] - y[i]) / (x[j] - x[i])))


def spikes(values: npt.ArrayLike, window: int = 20, factor: float = 8.0) -> list[int]:
    """Steps whose value stands out of the median of the finite ones before it by `factor` robust
    deviations.
    """
    array = np.asarray(values, np.float64)
    found = []
    for i in range(5, len(array)):
        before = finite(array[max(0, i - window) : i])
        if len(before) < 5:
            continue
        middle = float(np.median(before))
        spread = float(np.median(np.abs(before - middle))) * 1.4826 + 1e-12 + 0.02 * abs(middle)
        if not math.isfinite(array[i]) or array[i] - middle > factor * spread:
            found.append(i)
    return found


def fell(values: npt.ArrayLike, share: float = 0.05) -> bool:
    """The series went down by at least `share` of where it began, and by more than its noise."""
    begin, end = start_level(values), end_level(values)
    if not (math.isfinite(begin) and math.isfinite(end)):
        return False
    return begin - end > max(
        share * abs(begin), noise(values) if math.isfinite(noise(values)) else 0.0
    )


def diverged(values: npt.ArrayLike, factor: float = 1.5) -> bool:
    """Ends non-finite, or well above where it began."""
    begin, end = start_level(values), end_level(values)
    if math.isinf(end):
        return True
    return math.isfinite(begin) and math.isfinite(end) and end > begin + (factor - 1.0) * abs(begin)


def growth_exponent(values: npt.ArrayLike) -> float:
    """p in value ~ step^p, by robust regression in logarithms."""
    array = np.asarray(values, np.float64)
    keep = np.isfinite(array) & (array > 0)
    x, y = np.log(np.flatnonzero(keep) + 1.0), np.log(array[keep])
    if len(x) < 5:
        return math.nan
    index = np.unique(np.linspace(0, len(x) - 1, min(len(x), 150)).astype(int))
    i, j = np.triu_indices(len(index), 1)
    dx = x[index][j] - x[index][i]
    good = dx > 1e-9
    return float(np.median(((y[index][j] - y[index][i])[good]) / dx[good]))


def running_median(values: npt.ArrayLike, width: int) -> Floats:
    """The median of `width` neighbours around every value, fewer at the ends."""
    array, half = np.asarray(values, np.float64), width // 2
    return np.array([np.median(array[max(0, i - half) : i + half + 1]) for i in range(len(array))])
