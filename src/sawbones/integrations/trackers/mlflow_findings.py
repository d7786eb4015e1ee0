"""MLflow: tags that runs can be searched by, and the report as an artifact."""

from __future__ import annotations

from typing import Any

import mlflow

from sawbones.integrations.trackers import told
from sawbones.report.markdown import to_markdown
from sawbones.schema import Report

LONGEST_TAG = 5000
PAGE = "sawbones/report.md"


def tell(report: Report, place: str) -> str:
    """`place`: the experiment of a new run; without one, MLflow's own settings decide."""
    client = mlflow.MlflowClient()
    active = mlflow.active_run()
    if active is not None:
        put(client, active.info.run_id, report)
        return f"run {active.info.run_id} of {mlflow.get_tracking_uri()}"
    if place:
        mlflow.set_experiment(place)
    with mlflow.start_run(run_name=f"sawbones {report.script}") as begun:
        put(client, begun.info.run_id, report)
    return f"run {begun.info.run_id} of {mlflow.get_tracking_uri()}"


def put(client: Any, run_id: str, report: Report) -> None:
    client.set_tag(run_id, "sawbones.verdict", report.verdict)
    for name, text in told(report):
        client.set_tag(run_id, f"sawbones.{name}", text[:LONGEST_TAG])
    client.log_text(run_id, to_markdown(report), PAGE)
