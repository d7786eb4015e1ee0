"""Perfetto and chrome://tracing: steps as slices, events at their lines, the loss as a counter."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sawbones.integrations.exports import logged_columns
from sawbones.masking import mask_json
from sawbones.schema import Report, Run

STEPS, EVENTS, DATA = 1, 2, 3
TRACKS = {STEPS: "optimizer steps", EVENTS: "events", DATA: "waiting for data"}


def write(run: Run, report: Report, out: Path) -> Path:
    trace: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": run.rank, "tid": track, "args": {"name": name}}
        for track, name in TRACKS.items()
    ]
    logged = logged_columns(run)
    for row in range(run.num_steps):
        trace += _step(run, row)
        trace += _counters(run, row, {name: values[row] for name, values in logged.items()})
    for event in run.events:
        site = f"{event.site}" if event.site is not None else ""
        trace.append(
            {
                "ph": "i",
                "s": "t",
                "name": event.kind,
                "pid": run.rank,
                "tid": EVENTS,
                "ts": 1e6 * event.time,
                "args": {"step": event.step, "phase": event.phase, "where": site},
            }
        )
    document = {
        "traceEvents": trace,
        "otherData": {"script": run.script, "verdict": report.verdict},
    }
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    out.write_text(mask_json(text), encoding="utf-8")
    return out


def _step(run: Run, row: int) -> list[dict[str, Any]]:
    """`time` is when the step ended."""
    column = {name: float(values[row]) for name, values in run.steps.items()}
    number, end = int(column["step"]), 1e6 * column["time"]
    if not math.isfinite(end):
        return []
    lasted, waited = (1e3 * max(_known(column[name]), 0.0) for name in ("step_ms", "data_wait_ms"))
    slices = [(STEPS, f"step {number}", end - lasted, lasted)]
    slices += [(DATA, "wait", end - lasted, waited)] if waited else []
    shown: list[dict[str, Any]] = [
        {"ph": "X", "name": name, "pid": run.rank, "tid": track, "ts": begin, "dur": length}
        for track, name, begin, length in slices
    ]
    return shown + _counters(run, row, {n: column[n] for n in ("loss", "grad_norm", "lr")})


def _counters(run: Run, row: int, values: Mapping[str, float | None]) -> list[dict[str, Any]]:
    end = 1e6 * float(run.steps["time"][row])
    if not math.isfinite(end):
        return []
    return [
        {"ph": "C", "name": name, "pid": run.rank, "ts": end, "args": {name: value}}
        for name, value in values.items()
        if value is not None and math.isfinite(value)
    ]


def _known(value: float) -> float:
    return value if math.isfinite(value) else 0.0
