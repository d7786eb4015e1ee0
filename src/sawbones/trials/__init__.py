"""Finding -> Verdict: controlled re-executions.

A trial is a module with `run(bench, finding, run) -> Verdict`. Its docstring says what is changed,
what is measured, and which result confirms or refutes. The trial of one fault stands in its room
(`faults/<layer>/<fault>/trial.py`, with its NAME); those that serve several faults, or people by
`sawbones try`, are the `battery/`. The other files are what trials are made of: processes (bench,
child), `remedies/`, one virtual fix each, and readings of runs (twin, side_by_side, properties,
modes).
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sawbones.schema import Finding, Run, Verdict
from sawbones.schema.errors import SawbonesError

if TYPE_CHECKING:
    from sawbones.trials.bench import Bench

Trial = Callable[["Bench", Finding, Run], Verdict]
_ROOMS = "sawbones.faults"


def of_battery() -> tuple[str, ...]:
    package = importlib.import_module(f"{__name__}.battery")
    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.__path__)))


@cache
def in_rooms() -> dict[str, str]:
    """Name of a trial -> its module, over all rooms that have one."""
    found = {}
    layers = importlib.import_module(_ROOMS).__path__
    for layer in pkgutil.iter_modules(layers, f"{_ROOMS}."):
        for room in pkgutil.iter_modules(importlib.import_module(layer.name).__path__):
            name = f"{layer.name}.{room.name}.trial"
            if room.ispkg and importlib.util.find_spec(name) is not None:
                found[str(importlib.import_module(name).NAME)] = name
    return found


def names() -> tuple[str, ...]:
    return tuple(sorted({*of_battery(), *in_rooms()}))


def module_of(name: str) -> str:
    if name in of_battery():
        return f"{__name__}.battery.{name}"
    try:
        return in_rooms()[name]
    except KeyError:
        raise SawbonesError(f"no trial {name!r}. There are: {', '.join(names())}") from None


def title_of(name: str) -> str:
    """What a trial does, in a sentence: the first of its docstring."""
    told = (importlib.import_module(module_of(name)).__doc__ or "").strip().split("\n\n")[0]
    return " ".join(told.split()).split(". ")[0].rstrip(".")


def trial(name: str) -> Trial:
    act: Trial = importlib.import_module(module_of(name)).run
    return act
