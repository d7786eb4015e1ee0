"""What other trackers have logged, as curves: one file per format, each with `read(path)`;
TensorBoard's takes several, and says how far it is.
"""

from __future__ import annotations

import glob
import importlib
from collections.abc import Callable
from pathlib import Path

from sawbones.schema.curve import Log
from sawbones.schema.errors import SawbonesError

FORMATS = {
    "csv": "a table with a column step and one column per curve",
    "mlflow": "a store of MLflow (a .db file, a folder with one, or mlruns)",
    "tensorboard": "a folder with event files, or event files",
    "wandb": "the folder of an offline run",
}


Tell = Callable[[str], None]  # how far it is


class LogNotReadable(SawbonesError):
    """Nothing that the format knows is there, or its package is missing."""


def read_log(form: str, *paths: str | Path, tell: Tell = lambda text: None) -> Log:
    """Of one run. A path may have wildcards."""
    if form not in FORMATS:
        raise LogNotReadable(f"no format {form!r}. There are: {', '.join(FORMATS)}")
    places = [place for path in paths for place in _places(path)]
    for place in places:
        if not place.exists():
            raise LogNotReadable(f"no {place}: {FORMATS[form]} was expected")
    module = importlib.import_module(f"{__name__}.{form}_log")
    if form == "tensorboard":
        log: Log = module.read(places, tell)
    elif len(places) == 1:
        tell(f"{places[0]}")
        log = module.read(places[0])
    else:
        listed = ", ".join(map(str, places[:5]))
        raise LogNotReadable(f"one run at a time. There are: {listed}")
    if not log.curves:
        raise LogNotReadable(f"{places[0]} holds no curve: {FORMATS[form]} was expected")
    return log


def _places(path: str | Path) -> list[Path]:
    """What the wildcards stand for; a name that is there stands for itself."""
    found = sorted(glob.glob(str(path))) if not Path(path).exists() else []
    return [Path(name) for name in found] or [Path(path)]
