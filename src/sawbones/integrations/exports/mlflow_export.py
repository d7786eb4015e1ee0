"""MLflow: a store of its own in one folder; `mlflow ui --backend-store-uri sqlite:///PATH`."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from sawbones.integrations.exports import missing, rows
from sawbones.schema import Report, Run

STORE = "mlflow.db"
AT_ONCE = 900  # metrics of one call; MLflow takes 1,000


def write(run: Run, report: Report, out: Path) -> Path:
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        from sawbones.integrations.trackers.mlflow_findings import put
    except ImportError:
        raise missing("mlflow") from None
    out.mkdir(parents=True, exist_ok=True)
    store = (out / STORE).absolute()
    client = MlflowClient(tracking_uri=f"sqlite:///{store}")
    place = (out / "artifacts").absolute().as_uri()
    experiment = client.create_experiment("sawbones", artifact_location=place)
    tracked = client.create_run(experiment, run_name=Path(run.script).stem).info.run_id
    now = int(1000 * time.time())
    metrics = (
        Metric(name, value, now, step)
        for step, values in rows(run)
        for name, value in values.items()
    )
    while some := list(itertools.islice(metrics, AT_ONCE)):
        client.log_batch(tracked, metrics=some)
    put(client, tracked, report)
    client.set_terminated(tracked)
    return store
