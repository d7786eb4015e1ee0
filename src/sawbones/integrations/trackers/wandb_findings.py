"""W&B: an alert for each likely or proven cause, and all of it in the summary of the run."""

from __future__ import annotations

from typing import Any

import wandb

from sawbones.integrations.trackers import pressing, told
from sawbones.schema import Report


def tell(report: Report, place: str) -> str:
    """`place`: the project of a new run; without one, W&B's own settings decide."""
    active = wandb.run
    tracked = active or wandb.init(
        project=place or None, name=f"sawbones {report.script}", settings=quiet()
    )
    put(tracked, report)
    where = str(tracked.url or tracked.dir)
    if active is None:
        tracked.finish()
    return where


def quiet() -> Any:
    return wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True)


def put(tracked: Any, report: Report) -> None:
    tracked.summary["sawbones/verdict"] = report.verdict
    for name, text in told(report):
        tracked.summary[f"sawbones/{name}"] = text
    for name, text in pressing(report):
        tracked.alert(title=f"Sawbones: {name}", text=text, level=wandb.AlertLevel.WARN)
