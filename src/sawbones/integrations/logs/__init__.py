"""What other trackers have logged, as curves: one file per format, each with `read(path)`."""

from __future__ import annotations

import importlib
from pathlib import Path

from sawbones.schema.curve import Log
from sawbones.schema.errors import SawbonesError

FORMATS = {
    "csv": "a table with a column step and one column per curve",
    "mlflow": "a store of MLflow (a .db file, a folder with one, or mlruns)",
    "tensorboard": "a folder with event files",
    "wandb": "the folder of an offline run",
}


class LogNotReadable(SawbonesError):
    """Nothing that the format knows is there, or its package is missing."""


def read_log(form: str, path: str | Path) -> Log:
    if form not in FORMATS:
        raise LogNotReadable(f"no format {form!r}. There are: {', '.join(FORMATS)}")
    place = Path(path)
    if not place.exists():
        raise LogNotReadable(f"no {place}: {FORMATS[form]} was expected")
    module = importlib.import_module(f"{__name__}.{form}_log")
    log: Log = module.read(place)
    if not log.curves:
        raise LogNotReadable(f"{place} holds no curve: {FORMATS[form]} was expected")
    return log
