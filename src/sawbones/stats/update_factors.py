"""The numbers that an update without an optimizer object multiplies and divides by: its learning
rates, where they change from step to step, and its bias corrections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema.updates import UpdateFactor
from sawbones.stats.update_rules import Moved, Rule

Array = npt.NDArray[np.float64]

CLOSE = 1e-5  # relative: both sides are numbers of Python, at times rounded to float32
_POWERS = (-1.0, -0.5, 0.5, 1.0)


def decay_rates(factors: Sequence[UpdateFactor]) -> list[float]:
    """Constant numbers that stand beside what they leave of one, as those of a moving average."""
    numbers = {round(abs(f.values[0]), 9) for f in factors if f.values and not _varies(f.values)}
    return sorted((b for b in numbers if 0.5 <= b < 1 and round(1 - b, 9) in numbers), reverse=True)


def schedules(factors: Sequence[UpdateFactor], rates: Sequence[float]) -> list[Array]:
    """Numbers that change from step to step and are no bias correction, right or wrong."""
    found = []
    for factor in factors:
        values = np.abs(np.asarray(factor.values, np.float64))
        usable = bool(np.all(np.isfinite(values)) and np.all(values > 0))
        if usable and _varies(factor.values) and not _corrects(values, rates):
            found.append(values)
    return found


def corrections(factors: Sequence[UpdateFactor], rates: Sequence[float]) -> list[UpdateFactor]:
    """Those that are 1 - rate**t, for these rates; one for each of them at the most."""
    found: list[UpdateFactor] = []
    for rate in rates:
        count = np.arange(1, 1 + max((len(f.values) for f in factors), default=0))
        wanted = 1 - rate**count
        found += [f for f in factors if _same(np.asarray(f.values), wanted[: len(f.values)])][:1]
    return found


def at_rates(tensors: Sequence[Moved], rates: Array) -> list[Moved] | None:
    """The same tensors as moved by these learning rates; None where not all of them are known."""
    if any(t.steps > len(rates) for t in tensors):
        return None
    return [replace(t, lr=rates[: t.steps]) for t in tensors]


def off_at_any_rate(tensors: Sequence[Moved], rule: Rule) -> float:
    """What a rule leaves unexplained with a learning rate of its own for every step."""
    with np.errstate(all="ignore"):
        directions = rule.direction(tensors, [t.gradient for t in tensors], len(tensors))
    left = size = 0.0
    for k in range(min(t.steps for t in tensors)):
        y = np.concatenate([t.change[k] / np.linalg.norm(t.change) for t in tensors])
        x = np.concatenate(
            [d[k] / np.linalg.norm(t.change) for t, d in zip(tensors, directions, strict=True)]
        )
        power = float(x @ x)
        usable = np.isfinite(power) and power > 0
        rest = y - (float(x @ y) / power) * x if usable else y
        left, size = left + float(rest @ rest), size + float(y @ y)
    return float(np.sqrt(left / size)) if size > 0 else 1.0


def _varies(values: Sequence[float]) -> bool:
    return any(abs(v - values[0]) > CLOSE * abs(values[0]) for v in values)


def _same(a: Array, b: npt.NDArray[Any]) -> bool:
    return bool(len(a)) and bool(np.all(np.abs(a - b) <= CLOSE * np.abs(b)))


def _corrects(values: Array, rates: Sequence[float]) -> bool:
    """Up to a constant: 1 - rate**t, what is written for it by mistake, or the corrections of two
    moments in one number.
    """
    n = np.arange(1, len(values) + 1, dtype=np.float64)
    shape = np.log(values / values[0])
    whole = {b: 1 - b**n for b in rates}
    single = [form for b in rates for form in (1 - b ** (n + 1), np.abs(1 - b * n), (1 - b) ** n)]
    with np.errstate(all="ignore"):
        forms = [x**p for x in [*whole.values(), *single] for p in _POWERS]
        forms += [
            whole[a] ** p * whole[b] ** q
            for a, b in product(rates, rates)
            if a != b
            for p, q in product(_POWERS, _POWERS)
        ]
        return any(np.all(np.abs(np.log(f / f[0]) - shape) <= 10 * CLOSE) for f in forms)
