"""How far two arrays of the same rows lie apart, and what relates one to the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.parity.golden import Array

FITS = 1e-3  # share of the spread that a relation may leave unexplained

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Apart:
    largest: float  # difference, as a share of the largest value of the trained side
    rows: int  # that differ by more than the tolerance
    of: int
    other_class: int | None  # rows that get another class; None where these are no scores
    example: tuple[int, float, float] | None  # row, trained value, served value
    relation: str = ""


def apart(trained: Array, served: Array, tolerance: float) -> Apart | None:
    """None where they have different shapes: there is nothing to compare value by value."""
    if trained.shape != served.shape:
        return None
    a, b = trained.astype(np.float64), served.astype(np.float64)
    scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) or 1.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    off = np.where(same, 0.0, np.abs(a - b)) / scale
    off = np.where(np.isnan(off), np.inf, off)
    of_row = off.reshape(len(off), -1).max(1) if off.ndim else off.reshape(1)
    differs = of_row > tolerance
    other = None
    if a.ndim == 2 and a.shape[1] > 1:
        other = int(np.sum(a.argmax(1) != b.argmax(1)))
    elif trained.dtype.kind in "iub":
        other = int(np.sum(a != b))
    example = None
    if differs.any():
        worst = int(of_row.argmax())
        place = int(off.reshape(len(of_row), -1)[worst].argmax())
        pair = [float(x.reshape(len(of_row), -1)[worst, place]) for x in (a, b)]
        example = (worst, pair[0], pair[1])
    relation = _relation(a, b) if differs.any() else ""
    return Apart(float(of_row.max()), int(differs.sum()), len(of_row), other, example, relation)


def _relation(a: Numbers, b: Numbers) -> str:
    """In words, where one is the other turned round or scaled; "" where it is neither."""
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return ""
    spread = float(b.std()) or 1.0
    for axis in range(1, a.ndim):
        if a.shape[axis] > 1 and np.abs(np.flip(a, axis) - b).max() <= FITS * spread:
            more = " (as BGR is to RGB)" if a.shape[axis] == 3 else ""
            return f"the served values are the trained ones in reverse along axis {axis}{more}"
    wide = a.std()
    if wide == 0:
        return ""
    slope = float(np.mean((a - a.mean()) * (b - b.mean()))) / float(wide) ** 2
    offset = float(b.mean()) - slope * float(a.mean())
    if slope and np.abs(a * slope + offset - b).max() <= FITS * spread:
        return f"the served values are {slope:.4g} times the trained ones, moved by {offset:.4g}"
    limits = (float(b.min()), float(b.max()))
    if np.abs(np.clip(a, *limits) - b).max() <= FITS * spread:
        return (
            f"the served values are the trained ones cut off at {limits[0]:.4g} and {limits[1]:.4g}"
        )
    return ""
