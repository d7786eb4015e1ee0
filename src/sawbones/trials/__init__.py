"""Finding -> Verdict: controlled re-executions, one file per experiment, found by folder.

An experiment file holds `run(bench, finding, run) -> Verdict`. Its docstring says what is changed,
what is measured, and which result confirms or refutes. Files without `run` are what experiments are
made of: processes (bench, child) and readings of runs (twin, side_by_side, properties, modes).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.errors import SawbonesError

if TYPE_CHECKING:
    from sawbones.trials.bench import Bench

Experiment = Callable[["Bench", Finding, Run], Verdict]


def names() -> tuple[str, ...]:
    found = []
    for module in pkgutil.iter_modules(__path__):
        if not module.ispkg and hasattr(
            importlib.import_module(f"{__name__}.{module.name}"), "run"
        ):
            found.append(module.name)
    return tuple(sorted(found))


def experiment(name: str) -> Experiment:
    try:
        module = importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise SawbonesError(f"no experiment {name!r}. There are: {', '.join(names())}") from error
    act: Experiment = module.run
    return act
