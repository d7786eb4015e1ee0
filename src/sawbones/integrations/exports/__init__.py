"""A recorded run for other programs: one file per format, each with `write(run, report, out)`.

What is made to be passed on carries names, places, shapes and statistics, and no values of the
user's data; secrets are masked.
"""

from __future__ import annotations

import heapq
import importlib
import math
from collections.abc import Iterator
from pathlib import Path

from sawbones.masking import mask
from sawbones.schema import Report, Run
from sawbones.schema.errors import SawbonesError

FORMATS = {
    "csv": "one row per step",
    "mlflow": "a store of its own: metrics, findings as tags, the report as an artifact",
    "parquet": "one row per step",
    "perfetto": "a timeline of steps and events, for ui.perfetto.dev or chrome://tracing",
    "tensorboard": "scalars, and the findings as text",
    "trackio": "a project of its own: metrics, and findings as alerts",
    "wandb": "an offline run: history, alerts and summary",
}
CURVES = ("loss", "grad_norm", "param_norm", "update_norm", "lr", "step_ms", "data_wait_ms")
LOGGED = "logged/"  # before a name that the trainer logged: it may call its loss "loss" as well
MEASURED_FROM = 0.0  # norms and times below it mark that nothing was measured


class NotExported(SawbonesError):
    """The package of the format is missing, or the place is taken."""


def export(run: Run, report: Report, form: str, out: str | Path) -> Path:
    """Writes it and says where; findings and symptoms are those of the report."""
    if form not in FORMATS:
        raise NotExported(f"no format {form!r}. There are: {', '.join(FORMATS)}")
    if not run.num_steps:
        raise NotExported(f"{run.folder} has no optimizer step: nothing to export")
    module = importlib.import_module(f"{__name__}.{form}_export")
    place = Path(out)
    place.parent.mkdir(parents=True, exist_ok=True)
    written: Path = module.write(run, report, place)
    return written


def rows(run: Run) -> Iterator[tuple[int, dict[str, float]]]:
    """(step, what was measured or logged at it), in order: the curves that trackers draw. What the
    trainer logged stands at the trainer's own step.
    """
    logged = sorted(_logged(run), key=_step)
    yield from heapq.merge(_measured(run), logged, key=_step)


def logged_columns(run: Run) -> dict[str, list[float | None]]:
    """One value or None for each optimizer step: what the trainer logged after it, the last where
    it did so twice, with the trainer's own step beside it.
    """
    found: dict[str, list[float | None]] = {}
    for row in run.logged:
        own = {"step": float(row.step)} if row.step is not None else {}
        at = min(max(row.optimizer_step - 1, 0), run.num_steps - 1)
        for name, value in {**own, **row.metrics}.items():
            column = found.setdefault(LOGGED + mask(name), [None] * run.num_steps)
            column[at] = value
    return found


def _step(row: tuple[int, dict[str, float]]) -> int:
    return row[0]


def _logged(run: Run) -> Iterator[tuple[int, dict[str, float]]]:
    for row in run.logged:
        step = row.optimizer_step if row.step is None else row.step
        yield step, {LOGGED + mask(name): value for name, value in row.metrics.items()}


def _measured(run: Run) -> Iterator[tuple[int, dict[str, float]]]:
    columns = {name: run.steps[name] for name in CURVES if name in run.steps}
    for row, step in enumerate(run.steps["step"]):
        values = {name: float(column[row]) for name, column in columns.items()}
        known = {
            name: value
            for name, value in values.items()
            if name == "loss" or math.isnan(value) or value >= MEASURED_FROM
        }
        yield int(step), known


def missing(package: str) -> NotExported:
    return NotExported(f"{package} is missing: pip install {package}")
