"""Run -> figures for draw.js, as plain JSON values.

A figure is a dict with its `kind` (curve, map, bars, columns), its `height` and its numbers. All
text is put into the page as text, never as HTML.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.masking import shown_line
from sawbones.report import series, wording
from sawbones.schema import Attention, Event, Finding, Influence, Run

Figure = dict[str, Any]
CURVES = (
    ("loss", "Loss", "loss of each optimizer step"),
    ("grad_norm", "Gradient norm", "L2 norm over all gradients"),
    ("update_ratio", "Update ratio", "norm of the update / norm of the parameters"),
    ("lr", "Learning rate", "first parameter group"),
    ("scale", "Loss scale", "of the gradient scaler"),
)
USUAL_UPDATE_RATIO = 1e-3
MOST_BANDS = 60
CURVE_HEIGHT = 216
MARK_NAMES = ("no gradient", "exactly zero", "not finite")
# They say that something was called, and nothing that lasts until the next event.
_MOMENTS = {"seed"}


def short(value: float) -> float:
    """Five digits: more than a screen shows, in a third of the bytes."""
    return float(f"{value:.5g}")


def curve(run: Run, column: str, findings: Sequence[Finding]) -> Figure | None:
    found = series.curves(run, column)
    if not found:
        return None
    name = column.replace("_", " ")
    named = [
        (f"{name}, optimizer {line.optimizer}" if len(found) > 1 else name, line) for line in found
    ]
    figure = lines(named)
    figure["log"] = _spans_magnitudes(found, column)
    figure["bands"] = evidence_bands(findings)
    figure["range"] = _step_range(run)
    if column == "update_ratio":
        figure["levels"] = [[USUAL_UPDATE_RATIO, "usual"]]
    return figure


def logged(run: Run) -> list[tuple[str, Figure]]:
    """One picture for each name that the trainer logged; a value that came once is no curve."""
    found = [(n, line) for n, line in series.logged(run).items() if len(set(line.steps)) > 1]
    return [(shown_line(name), lines([(shown_line(name), line)])) for name, line in found]


def lines(named: Sequence[tuple[str, series.Curve]]) -> Figure:
    """Curves over the same steps in one picture."""
    return {
        "kind": "curve",
        "height": CURVE_HEIGHT,
        "x": "step",
        "lines": [
            {
                "name": name,
                "x": line.steps,
                "y": [None if value is None else short(value) for value in line.values],
            }
            for name, line in named
        ],
        "broken": [_broken(group) for _, line in named for group in line.broken],
    }


def _broken(group: series.Broken) -> Figure:
    """Crosses along the top: a NaN has no height, and must not vanish for that."""
    among = f", {group.count} of them up to step {group.steps[-1]}" if group.count > 1 else ""
    return {"x": list(group.steps), "text": f"{group.kind}{among}"}


def evidence_bands(findings: Sequence[Finding]) -> list[list[Any]]:
    """A band for each range of evidence steps, numbered like the finding it belongs to."""
    bands: list[list[Any]] = []
    for number, finding in enumerate(findings, start=1):
        steps = {step for evidence in finding.evidence for step in evidence.steps if step >= 0}
        bands += [[first, last, str(number)] for first, last in wording.ranges(steps)[:MOST_BANDS]]
    return bands


def _spans_magnitudes(found: Sequence[series.Curve], column: str) -> bool:
    values = np.array([value for line in found for value in line.values if value is not None])
    if not len(values) or (values <= 0).any():
        return False
    most = 3 if column in ("update_ratio", "scale", "grad_norm") else 300
    return float(values.max()) > most * float(values.min())


def _step_range(run: Run) -> list[float]:
    steps = run.steps["step"]
    margin = max(0.5, 0.015 * float(steps.max() - steps.min()))
    return [float(steps.min()) - margin, float(steps.max()) + margin]


def experiment(curves: Sequence[Mapping[str, Any]]) -> Figure | None:
    """The loss as it is and under each change, over the same steps; each holds `name`, `steps` and
    `losses`.
    """
    named = []
    for one in curves:
        steps = np.asarray(one.get("steps", ()), np.float64)
        losses = np.array([math.nan if v is None else float(v) for v in one.get("losses", ())])
        if not len(steps) or len(steps) != len(losses):
            return None
        named.append((shown_line(str(one.get("name", ""))), series.thinned(0, steps, losses)))
    if len(named) < 2:
        return None
    figure = lines(named)
    figure["group"] = "experiment"
    known = [value for line in figure["lines"] for value in line["y"] if value is not None]
    figure["log"] = bool(known) and min(known) > 0 and max(known) > 100 * min(known)
    return figure


def layers(run: Run, statistic: str = "grad_l2") -> Figure | None:
    found = series.layer_map(run, statistic)
    if found is None:
        return None
    return magnitudes(found.layers, found.steps, found.log10, found.special)


def magnitudes(
    names: Sequence[str],
    steps: Sequence[int],
    log10: Sequence[Sequence[float | None]],
    marks: Sequence[Sequence[int | None]],
) -> Figure:
    """Layers by steps, in shades of the power of ten."""
    known = [value for row in log10 for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return {
        "kind": "map",
        "height": 40 + 17 * len(names),
        "x": list(steps),
        "y": [shown_line(name) or "(model)" for name in names],
        "z": [[None if v is None else round(v, 2) for v in row] for row in log10],
        "marks": marks,
        "mark_names": MARK_NAMES,
        "low": round(low, 2),
        "high": round(high, 2),
        "low_text": f"{10**low:.0e}",
        "high_text": f"{10**high:.0e}",
        "unit": "log10 of the norm",
        "legend": "norm",
        "x_title": "step",
    }


def timeline(events: Sequence[Event], own_ms: Mapping[int, float] | None) -> Figure | None:
    """One lane per kind of event; a bar lasts from one event to the next, without the time that
    watching took. Where that time is not known, an event is a mark and lasts nothing.
    """
    events = [event for event in events if event.kind not in _MOMENTS]
    if not events:
        return None
    lanes = list(dict.fromkeys(shown_line(event.kind) for event in events))
    starts, taken = own_time_out(events, own_ms)
    bars = []
    for i, event in enumerate(events):
        ends = starts[i + 1] if i + 1 < len(events) else None
        begin = round(starts[i], 4)
        bars.append(
            {
                "lane": lanes.index(shown_line(event.kind)),
                "from": begin,
                "to": None if ends is None or own_ms is None else round(ends, 4),
                "text": _event_text(i + 1, event, begin),
            }
        )
    return {
        "kind": "bars",
        "height": 30 + 22 * len(lanes),
        "lanes": lanes,
        "bars": bars,
        "own_ms": round(taken, 3),
    }


def own_time_out(
    events: Sequence[Event], own_ms: Mapping[int, float] | None
) -> tuple[list[float], float]:
    """When each event came, in milliseconds of the script's own time since the first, and how much
    of the tool's own time was taken out. `own_ms`: event -> ours since the event before it.
    """
    starts, taken = [0.0], 0.0
    for before, event in itertools.pairwise(events):
        passed = 1000 * (event.time - before.time)
        ours = sum(
            (own_ms or {}).get(number, 0.0) for number in range(before.seq + 1, event.seq + 1)
        )
        ours = min(max(ours, 0.0), max(passed, 0.0))
        taken += ours
        starts.append(starts[-1] + passed - ours)
    return starts, taken


def _event_text(number: int, event: Event, begin: float) -> str:
    place = f"\n{shown_line(str(event.site))}\n{shown_line(event.site.code)}" if event.site else ""
    return f"{number}. {shown_line(event.kind)}, {begin:.2f} ms after the step began{place}"


def influence(found: Influence) -> Figure | None:
    if not found.map:
        return None
    columns = max(len(row) for row in found.map)
    length = found.source_shape[found.time_dim] if found.time_dim >= 0 else columns
    edges = _group_edges(length, columns)
    positions = _row_positions(found)
    values = [v for row in found.map for v in row if math.isfinite(v)]
    return {
        "kind": "map",
        "height": min(420, 60 + max(16, 320 // max(1, len(found.map))) * len(found.map)),
        "x": [str(a) if b == a + 1 else f"{a}–{b - 1}" for a, b in itertools.pairwise(edges)],
        "y": [f"output {p}" for p in positions]
        or [f"probe {i}" for i in range(1, len(found.map) + 1)],
        "z": [[short(v) if math.isfinite(v) else None for v in row] for row in found.map],
        "low": 0,
        "high": max([short(v) for v in values], default=1) or 1,
        "unit": "share of the influence",
        "x_title": "input position",
        "border": [_column_of(p + found.start + 1, edges) for p in positions],
    }


def attention(found: Attention) -> Figure:
    """Queries by keys; right of the line lies the future, where both are the same positions."""
    edges = [_group_edges(size, len(side)) for size, side in _sides(found)]
    queries, keys = (
        [str(a) if b == a + 1 else f"{a}–{b - 1}" for a, b in itertools.pairwise(side)]
        for side in edges
    )
    values = [v for row in found.map for v in row]
    figure = {
        "kind": "map",
        "height": 60 + max(7, 150 // len(queries)) * len(queries),
        "x": keys,
        "y": [f"query {name}" for name in queries],
        "z": [list(row) for row in found.map],
        "low": 0,
        "high": max([short(v) for v in values], default=1) or 1,
        "unit": "share of the attention",
        "x_title": "key",
    }
    if found.queries == found.keys:
        figure["border"] = [_column_of(b, edges[1]) for b in edges[0][1:]]
    return figure


def _sides(found: Attention) -> tuple[tuple[int, Sequence[Any]], tuple[int, Sequence[Any]]]:
    return (found.queries, found.map), (found.keys, found.map[0])


def _row_positions(found: Influence) -> list[int]:
    """Which output each row is of. An older recording names the probed outputs only; they are the
    rows where there are as many.
    """
    if found.rows:
        return list(found.rows)
    probed = sorted({position for _, position in found.outputs})
    return probed if len(probed) == len(found.map) else []


def _group_edges(length: int, groups: int) -> list[int]:
    """Where neighbouring positions were joined, the larger groups come first."""
    size, larger = divmod(max(length, groups), groups)
    sizes: npt.NDArray[np.int64] = np.array([size + (i < larger) for i in range(groups)])
    return [0, *np.cumsum(sizes).tolist()]


def _column_of(position: int, edges: Sequence[int]) -> float:
    """A position as a place between the columns."""
    return float(np.interp(position, edges, np.arange(len(edges))))
