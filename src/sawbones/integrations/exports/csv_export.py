"""CSV: the columns of the steps, one row each; what the trainer logged after a step in columns of its
own, empty elsewhere.
"""

from __future__ import annotations

import csv
from pathlib import Path

from sawbones.integrations.exports import logged_columns
from sawbones.schema import Report, Run
from sawbones.schema.run import STEP_COLUMNS

WHOLE = ("step", "optimizer", "skipped", "microsteps", "deep")


def write(run: Run, report: Report, out: Path) -> Path:
    names = [name for name in STEP_COLUMNS if name in run.steps]
    logged = logged_columns(run)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, *logged])
        for row in range(run.num_steps):
            values = (float(run.steps[name][row]) for name in names)
            cells = [_cell(n, v) for n, v in zip(names, values, strict=True)]
            writer.writerow([*cells, *(column[row] for column in logged.values())])
    return out


def _cell(name: str, value: float) -> float | int:
    return int(value) if name in WHOLE and value == value else value
