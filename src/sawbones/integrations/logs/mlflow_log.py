"""MLflow: the metrics of the newest run of a store, by MLflow's own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sawbones.integrations.logs import LogNotReadable
from sawbones.schema.curve import Log, curve

STORES = ("mlflow.db", "mlruns.db")


def read(path: Path) -> Log:
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise LogNotReadable("mlflow is missing: pip install mlflow") from None
    client = MlflowClient(tracking_uri=_address(path))
    experiments = [e.experiment_id for e in client.search_experiments()]
    found = client.search_runs(experiments, order_by=["attributes.start_time DESC"], max_results=1)
    if not found:
        raise LogNotReadable(f"{path} holds no run of MLflow")
    run: Any = found[0]
    curves = []
    for name in run.data.metrics:
        points = client.get_metric_history(run.info.run_id, name)
        curves.append(curve(name, [(int(p.step), float(p.value)) for p in points]))
    return Log(f"{path} ({run.info.run_name or run.info.run_id})", tuple(curves))


def _address(path: Path) -> str:
    """A file of SQLite, a folder that holds one, or a folder of files as mlruns/ is."""
    file = path
    if path.is_dir():
        file = next((path / name for name in STORES if (path / name).is_file()), path)
    return f"sqlite:///{file.absolute()}" if file.is_file() else file.absolute().as_uri()
