"""Run -> figures for plotly.js, as plain JSON values.

Colours are written as names (`@line`): the page puts in the values of its style sheet, so that one
file serves a light and a dark screen. Text in a figure is read by plotly as HTML, so everything of
the user's is escaped here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sawbones.masking import shown_line
from sawbones.report import series, wording
from sawbones.schema import Event, Finding, Influence, Run

Figure = dict[str, Any]
CURVES = (
    ("loss", "Loss", "loss of each optimizer step"),
    ("grad_norm", "Gradient norm", "L2 norm over all gradients"),
    ("update_ratio", "Update ratio", "norm of the update / norm of the parameters"),
    ("lr", "Learning rate", "first parameter group"),
    ("scale", "Loss scale", "of the gradient scaler"),
)
USUAL_UPDATE_RATIO = 1e-3
LINE_COLOURS = ("@line", "@line2", "@line3", "@line4")
MOST_BANDS = 60
LABEL_WIDTH = 22


def escaped(text: str) -> str:
    return html.escape(shown_line(text))


def curve(run: Run, column: str, findings: Sequence[Finding]) -> Figure | None:
    found = series.curves(run, column)
    if not found:
        return None
    traces = []
    for index, line in enumerate(found):
        name = f"optimizer {line.optimizer}" if len(found) > 1 else column.replace("_", " ")
        colour = LINE_COLOURS[index % len(LINE_COLOURS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if len(line.steps) < 60 else "lines",
                "name": name,
                "x": line.steps,
                "y": line.values,
                "connectgaps": False,
                "line": {"color": colour, "width": 1.75},
                "marker": {"color": colour, "size": 4},
                "hovertemplate": "step %{x}<br><b>%{y:.4g}</b><extra></extra>",
                "showlegend": len(found) > 1,
            }
        )
        if line.broken:
            traces.append(_broken_marks(line.broken))
    shapes, notes = _evidence_marks(findings, run)
    if column == "update_ratio":
        shapes.append(_level(USUAL_UPDATE_RATIO))
    layout = _layout(230 if notes else 204, top=34 if notes else 8)
    layout["yaxis"].update(_value_axis(found, column))
    layout["xaxis"].update(
        {"title": {"text": "step", "font": {"size": 11}}, "range": _step_range(run)}
    )
    layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    layout["shapes"], layout["annotations"] = shapes, notes
    return {"data": traces, "layout": layout}


def _broken_marks(broken: Sequence[series.Broken]) -> Figure:
    """Crosses along the top, on an axis of their own: a NaN has no height, and must not vanish for
    that.
    """
    places: list[int] = []
    texts: list[str] = []
    for group in broken:
        among = (
            f"<br>{group.count} from step {group.steps[0]} to {group.steps[-1]}"
            if group.count > 1
            else ""
        )
        places += group.steps
        texts += [f"<b>{group.kind}</b> at step {step}{among}" for step in group.steps]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "not finite",
        "x": places,
        "y": [0.95] * len(places),
        "yaxis": "y2",
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"symbol": "x", "size": 9, "color": "@bad"},
        "showlegend": False,
    }


def _evidence_marks(findings: Sequence[Finding], run: Run) -> tuple[list[Figure], list[Figure]]:
    """A band for each range of evidence steps, numbered like the finding it belongs to."""
    shapes: list[Figure] = []
    notes: list[Figure] = []
    for number, finding in enumerate(findings, start=1):
        steps = {step for evidence in finding.evidence for step in evidence.steps if step >= 0}
        for first, last in wording.ranges(steps)[:MOST_BANDS]:
            shapes.append(
                {
                    "type": "rect",
                    "layer": "below",
                    "xref": "x",
                    "yref": "paper",
                    "x0": first - 0.5,
                    "x1": last + 0.5,
                    "y0": 0,
                    "y1": 1,
                    "fillcolor": "@mark",
                    "opacity": 0.55,
                    "line": {"width": 1 if last - first < 2 else 0, "color": "@mark"},
                }
            )
            notes.append(
                {
                    "x": (first + last) / 2,
                    "y": 1,
                    "xref": "x",
                    "yref": "paper",
                    "yanchor": "bottom",
                    "yshift": 11 * (number - 1),
                    "showarrow": False,
                    "text": str(number),
                    "font": {"size": 10, "color": "@muted"},
                }
            )
    return shapes, notes


def _level(value: float) -> Figure:
    line = {"color": "@muted", "width": 1, "dash": "dot"}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": value,
        "y1": value,
        "line": line,
    }


def _value_axis(found: Sequence[series.Curve], column: str) -> Figure:
    """Logarithmic where values span orders of magnitude, with ticks at 1, 2 and 5: plotly's own
    crowd a short axis.
    """
    values = np.array([value for line in found for value in line.values if value is not None])
    linear: Figure = {"type": "linear", "exponentformat": "e", "nticks": 6}
    if not len(values) or (values <= 0).any():
        return linear
    low, high = float(values.min()), float(values.max())
    if high <= (3 if column in ("update_ratio", "scale", "grad_norm") else 300) * low:
        return linear
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    digits = (1, 2, 5) if high < 100 * low else (1,)
    ticks = [digit * 10.0**power for power in decades[:: 1 + len(decades) // 7] for digit in digits]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _step_range(run: Run) -> list[float]:
    steps = run.steps["step"]
    margin = max(1.0, 0.015 * float(steps.max() - steps.min()))
    return [float(steps.min()) - margin, float(steps.max()) + margin]


def layers(run: Run) -> Figure | None:
    found = series.layer_map(run)
    if found is None:
        return None
    names = [escaped(name) or "(model)" for name in found.layers]
    shared = {"type": "heatmap", "x": found.steps, "y": names, "ygap": 1, "hoverongaps": False}
    labels = {0: "no gradient", 1: "exactly zero", 2: "not finite"}
    traces = [
        {
            **shared,
            "z": found.log10,
            "colorscale": [[0, "@low"], [0.5, "@mid"], [1, "@high"]],
            "colorbar": {
                "thickness": 8,
                "outlinewidth": 0,
                "title": {"text": "log10", "side": "top", "font": {"size": 10}},
            },
            "hovertemplate": "%{y}<br>step %{x}<br>10^<b>%{z:.2f}</b><extra></extra>",
        },
        {
            **shared,
            "z": found.special,
            "zmin": 0,
            "zmax": 2,
            "text": [
                ["" if mark is None else labels[mark] for mark in row] for row in found.special
            ],
            "colorscale": [
                [0, "@grid"],
                [0.33, "@grid"],
                [0.34, "@muted"],
                [0.66, "@muted"],
                [0.67, "@bad"],
                [1, "@bad"],
            ],
            "showscale": False,
            "hovertemplate": "%{y}<br>step %{x}<br><b>%{text}</b><extra></extra>",
        },
    ]
    layout = _layout(70 + 17 * len(names), top=10)
    layout["yaxis"].update(
        {"autorange": "reversed", "showgrid": False, "tickfont": {"size": 10}, "type": "category"}
    )
    layout["yaxis"].update(
        {"tickvals": names, "ticktext": [_short_name(name) for name in found.layers]}
    )
    layout["xaxis"].update({"title": {"text": "step", "font": {"size": 11}}, "showgrid": False})
    return {"data": traces, "layout": layout}


def _short_name(layer: str) -> str:
    """The end of a long path: the plot is worth more of a phone's width than its labels."""
    return (
        escaped(layer if len(layer) <= LABEL_WIDTH else "…" + layer[1 - LABEL_WIDTH :]) or "(model)"
    )


def timeline(events: Sequence[Event]) -> Figure | None:
    """One lane per kind of event; a bar lasts until the next event begins."""
    if not events:
        return None
    kinds = list(dict.fromkeys(event.kind for event in events))
    begin = events[0].time
    starts = [1000 * (event.time - begin) for event in events]
    span = max(starts[-1], 1e-3)
    ends = [*starts[1:], starts[-1] + 0.02 * span]
    # An event of microseconds would be a bar of no width.
    widths = [max(end - start, 0.006 * span) for start, end in zip(starts, ends, strict=True)]
    texts = [_event_text(number, event) for number, event in enumerate(events, start=1)]
    bars = {
        "type": "bar",
        "orientation": "h",
        "base": starts,
        "x": widths,
        "y": [escaped(event.kind) for event in events],
        "customdata": starts,
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<br>at %{customdata:.2f} ms<extra></extra>",
        "marker": {"color": "@line", "line": {"width": 0}},
        "showlegend": False,
    }
    layout = _layout(60 + 24 * len(kinds), top=8)
    layout["barmode"], layout["bargap"] = "overlay", 0.45
    layout["yaxis"].update(
        {
            "categoryorder": "array",
            "categoryarray": [escaped(k) for k in kinds],
            "autorange": "reversed",
        }
    )
    layout["yaxis"].update({"type": "category", "showgrid": True})
    layout["xaxis"].update(
        {"title": {"text": "ms since the step began", "font": {"size": 11}}, "rangemode": "tozero"}
    )
    return {"data": [bars], "layout": layout}


def _event_text(number: int, event: Event) -> str:
    place = f"<br>{escaped(str(event.site))}<br>{escaped(event.site.code)}" if event.site else ""
    return f"<b>{number}. {escaped(event.kind)}</b>{place}"


def influence(found: Influence) -> Figure | None:
    if not found.map:
        return None
    rows = len(found.map)
    columns = max(len(row) for row in found.map)
    trace = {
        "type": "heatmap",
        "z": [[value if np.isfinite(value) else None for value in row] for row in found.map],
        "zmin": 0,
        "colorscale": [[0, "@panel"], [0.5, "@mid"], [1, "@high"]],
        "colorbar": {"thickness": 8, "outlinewidth": 0},
        "hovertemplate": (
            "output %{y} depends on input %{x}<br>share <b>%{z:.3f}</b><extra></extra>"
        ),
    }
    layout = _layout(360, top=8)
    layout["xaxis"].update(
        {"title": {"text": "input position", "font": {"size": 11}}, "showgrid": False}
    )
    layout["yaxis"].update(
        {
            "title": {"text": "output position", "font": {"size": 11}},
            "autorange": "reversed",
            "showgrid": False,
        }
    )
    # Right of this line lies the future.
    diagonal = {"color": "@bad", "width": 1.5, "dash": "dot"}
    edge = min(rows, columns) - 0.5
    layout["shapes"] = [
        {"type": "line", "x0": 0.5, "y0": -0.5, "x1": edge, "y1": edge - 1, "line": diagonal}
    ]
    return {"data": [trace], "layout": layout}


def _layout(height: int, top: int = 34) -> Figure:
    axis = {
        "gridcolor": "@grid",
        "linecolor": "@grid",
        "zeroline": False,
        "automargin": True,
        "tickfont": {"size": 11},
        "ticks": "",
    }
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": top, "b": 8, "pad": 4},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "inherit", "size": 12, "color": "@muted"},
        "hoverlabel": {
            "bgcolor": "@panel",
            "bordercolor": "@grid",
            "font": {"color": "@text", "size": 12},
            "align": "left",
        },
        "hovermode": "closest",
        "dragmode": "zoom",
        "legend": {"orientation": "h", "y": 1.15},
        "xaxis": dict(axis),
        "yaxis": dict(axis),
    }
