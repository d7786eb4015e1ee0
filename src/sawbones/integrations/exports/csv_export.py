"""CSV: the columns of the steps, one row each."""

from __future__ import annotations

import csv
from pathlib import Path

from sawbones.schema import Report, Run
from sawbones.schema.run import STEP_COLUMNS

WHOLE = ("step", "optimizer", "skipped", "microsteps", "deep")


def write(run: Run, report: Report, out: Path) -> Path:
    names = [name for name in STEP_COLUMNS if name in run.steps]
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in range(run.num_steps):
            values = (float(run.steps[name][row]) for name in names)
            writer.writerow([_cell(n, v) for n, v in zip(names, values, strict=True)])
    return out


def _cell(name: str, value: float) -> float | int:
    return int(value) if name in WHOLE and value == value else value
