"""Series of a run made ready for drawing: thinned to what a screen can show, without losing a spike
or a NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema import NO_GRADIENT, NOT_MEASURED, Run

MOST_POINTS = 1200
MOST_MARKS_IN_A_ROW = 40
MOST_LAYERS = 48
MOST_COLUMNS = 300

Floats = npt.NDArray[np.float64]
# What a cell of the layer map shows when its logarithm says nothing.
NO_GRADIENT_CELL, ZERO_CELL, NONFINITE_CELL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Broken:
    """Neighbouring steps at which a value was NaN or Inf: all of them, or a spread of them that
    holds both ends.
    """

    steps: tuple[int, ...]
    count: int
    kind: str  # "nan", "inf", "-inf"


@dataclass(frozen=True, slots=True)
class Curve:
    optimizer: int
    steps: list[int]
    values: list[float | None]  # None breaks the line
    broken: tuple[Broken, ...]


@dataclass(frozen=True, slots=True)
class LayerMap:
    layers: list[str]
    steps: list[int]
    log10: list[list[float | None]]
    special: list[list[int | None]]


def curves(run: Run, column: str) -> list[Curve]:
    """One curve for each optimizer; empty when the column was not recorded."""
    steps, owners = run.steps.get("step"), run.steps.get("optimizer")
    values = _ratio(run.steps) if column == "update_ratio" else run.steps.get(column)
    if steps is None or values is None or not len(steps) or run.signals.get(column):
        return []
    missing = _missing(values, column)
    # Without a loss scaler or a scheduler the column is NaN throughout: that is "nothing there",
    # not "broken".
    if missing.all() or (
        column in ("scale", "lr", "update_ratio") and np.isnan(values[~missing]).all()
    ):
        return []
    owners = np.zeros(len(steps)) if owners is None else owners
    found = []
    for owner in np.unique(owners):
        own = (owners == owner) & ~missing
        if own.any():
            found.append(thinned(int(owner), steps[own], values[own]))
    return found


def logged(run: Run) -> dict[str, Curve]:
    """What the trainer logged itself, under its own names and at its own steps."""
    points: dict[str, list[tuple[int, float]]] = {}
    for row in run.logged:
        step = row.optimizer_step if row.step is None else row.step
        for name, value in row.metrics.items():
            points.setdefault(name, []).append((step, value))
    found = {}
    for name, one in points.items():
        table = np.array(sorted(one, key=lambda point: point[0]), np.float64)
        found[name] = thinned(0, table[:, 0], table[:, 1])
    return found


def _ratio(columns: Mapping[str, Floats]) -> Floats | None:
    update, param = columns.get("update_norm"), columns.get("param_norm")
    if update is None or param is None:
        return None
    # Updates are measured on sampled steps only; a step without one is not a broken step.
    known = (
        ~np.isnan(update)
        & ~np.isnan(param)
        & (update != NOT_MEASURED)
        & (param != NOT_MEASURED)
        & (param != 0)
    )
    ratio = np.full(len(update), NOT_MEASURED)
    ratio[known] = update[known] / param[known]
    return ratio


def _missing(values: Floats, column: str) -> npt.NDArray[np.bool_]:
    marks: npt.NDArray[np.bool_] = (values == NOT_MEASURED) | (values == NO_GRADIENT)
    # A loss may truly be -1; it is the mark only where no other value is negative.
    if column == "loss" and ((values < 0) & ~marks).any():
        return np.zeros(len(values), np.bool_)
    return marks


def thinned(optimizer: int, steps: Floats, values: Floats) -> Curve:
    """At most MOST_POINTS points: of every bucket its lowest and its highest value. Non-finite
    steps are kept apart.
    """
    finite = np.isfinite(values)
    size = -(-2 * len(values) // MOST_POINTS) if len(values) > MOST_POINTS else 1
    kept_steps: list[int] = []
    kept: list[float | None] = []
    for start in range(0, len(values), size):
        inside = np.arange(start, min(start + size, len(values)))
        good = inside[finite[inside]]
        if len(good):
            for index in sorted(
                {int(good[values[good].argmin()]), int(good[values[good].argmax()])}
            ):
                kept_steps.append(int(steps[index]))
                kept.append(float(values[index]))
        if len(good) < len(inside):
            kept_steps.append(int(steps[inside[~finite[inside]][0]]))
            kept.append(None)
    return Curve(optimizer, kept_steps, kept, _broken(steps, values, size))


def _broken(steps: Floats, values: Floats, reach: int) -> tuple[Broken, ...]:
    """Runs of non-finite values; in a thinned curve, those closer than a bucket count as one."""
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return ()
    found = []
    for group in np.split(bad, np.flatnonzero(np.diff(bad) > reach) + 1):
        spread = np.unique(
            np.linspace(0, len(group) - 1, min(len(group), MOST_MARKS_IN_A_ROW)).astype(int)
        )
        marks = tuple(int(step) for step in steps[group[spread]])
        found.append(Broken(marks, len(group), _kind(float(values[group[0]]))))
    return tuple(found)


def _kind(value: float) -> str:
    return "nan" if value != value else "inf" if value > 0 else "-inf"


def layer_norms(run: Run, statistic: str) -> list[tuple[str, Floats]]:
    """(layer, its norm at every step at which any was measured)."""
    table, measured = _measured(run, statistic)
    if table is None:
        return []
    groups = _layers([tensor.name for tensor in run.tensors[: table.shape[1]]])
    return [
        (name, _group_norms(table[measured][:, members].astype(np.float64)))
        for name, members in groups.items()
    ]


def _measured(run: Run, statistic: str) -> tuple[Any, npt.NDArray[np.bool_]]:
    table = run.statistics.get(statistic)
    if table is None or not table.size or not run.tensors:
        return None, np.zeros(0, np.bool_)
    measured = (table != NOT_MEASURED).any(axis=1)
    return (table if measured.any() else None), measured


def layer_map(run: Run, statistic: str = "grad_l2") -> LayerMap | None:
    """log10 of a norm by layer and step; the worst step of a column that stands for
    several.
    """
    found = layer_norms(run, statistic)
    if not found:
        return None
    steps = run.tensor_steps[_measured(run, statistic)[1]]
    rows, marks = [], []
    size = max(1, -(-len(steps) // MOST_COLUMNS))
    starts = range(0, len(steps), size)
    for _, norms in found:
        columns = [_worst(norms[start : start + size]) for start in starts]
        rows.append(
            [
                round(float(np.log10(value)), 3) if np.isfinite(value) and value > 0 else None
                for value in columns
            ]
        )
        marks.append([_special(value) for value in columns])
    return LayerMap(
        [name for name, _ in found], [int(steps[start]) for start in starts], rows, marks
    )


def _layers(names: list[str]) -> dict[str, list[int]]:
    """Tensors by module, in the model's order; by outer modules when there are too many to read."""
    depth = max((name.count(".") for name in names), default=0)
    while True:
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            module = name.rsplit(".", 1)[0].split(".")[: max(depth, 1)]
            groups.setdefault(".".join(module), []).append(index)
        if len(groups) <= MOST_LAYERS or depth <= 1:
            return dict(list(groups.items())[:MOST_LAYERS])
        depth -= 1


def _group_norms(norms: Floats) -> Floats:
    """The norm over a layer's tensors; a mark where none of them has one."""
    absent, unmeasured = norms == NO_GRADIENT, norms == NOT_MEASURED
    with np.errstate(invalid="ignore", over="ignore"):
        total: Floats = np.sqrt(np.where(absent | unmeasured, 0.0, norms**2).sum(axis=1))
    total[absent.all(axis=1)] = NO_GRADIENT
    total[unmeasured.any(axis=1) & (absent | unmeasured).all(axis=1)] = NOT_MEASURED
    return total


def _worst(norms: Floats) -> float:
    bad = norms[~np.isfinite(norms)]
    return float(bad[0]) if len(bad) else float(norms.max())


def _special(value: float) -> int | None:
    if not np.isfinite(value):
        return NONFINITE_CELL
    return {NO_GRADIENT: NO_GRADIENT_CELL, 0.0: ZERO_CELL}.get(value)
