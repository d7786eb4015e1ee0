"""Trackio: an alert for the verdict, for each cause and for each symptom."""

from __future__ import annotations

import trackio

from sawbones.integrations.trackers import pressing, told
from sawbones.schema import Report


def tell(report: Report, place: str) -> str:
    """`place`: the project of a new run."""
    try:
        put(report)
        return "the run that is active"
    except RuntimeError:  # there is none: it says "Call trackio.init() before"
        pass
    project = place or "sawbones"
    begin(project, report.script)
    put(report)
    trackio.finish()
    return f"project {project} (trackio show --project {project})"


def begin(project: str, name: str) -> None:
    trackio.init(project=project, name=name, embed=False, auto_log_gpu=False, auto_log_cpu=False)


def put(report: Report) -> None:
    is_pressing = {name for name, _ in pressing(report)}
    ill = report.verdict not in ("healthy", "inconclusive")
    level = trackio.AlertLevel.ERROR if ill else trackio.AlertLevel.INFO
    trackio.alert(f"Sawbones: {report.verdict}", level=level)
    for name, text in told(report):
        level = trackio.AlertLevel.WARN if name in is_pressing else trackio.AlertLevel.INFO
        trackio.alert(f"Sawbones: {name}", text=text, level=level)
