"""The injectors of the rooms: `faults/<layer>/<fault>/inject.py` puts its fault into a healthy script.

An injector holds
    LEVEL           1 (an error names the line) to 4 (only a measurement shows it)
    MAY_LOOK_BETTER (optional) the numbers of the log can be better with the fault in: it is shown by
                    other numbers, not by worse ones
    TRIAL           (optional) what `sawbones try` is asked to separate it from its rivals
    REPEATS         (optional) False: two runs differ, and that is the symptom to be reproduced
    inject(source)  yields edits of byte ranges, one tuple for each place where the fault can be put
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from sawbones.faults import all_checks
from sawbones.fixing.editing import EditRefused, apply
from sawbones.fixing.source import Source
from sawbones.practise.places import Edits


@dataclass(frozen=True)
class Injector:
    fault: str
    level: int
    function: Callable[[Source], Iterable[Edits]]
    may_look_better: bool = False
    trial: str = ""
    repeats: bool = True

    @property
    def layer(self) -> str:
        return self.fault.partition(".")[0]

    def into(self, source: Source) -> list[Source]:
        """The script with the fault in it, once for each place; empty where there is none."""
        found = []
        try:
            for edits in self.function(source):
                found.append(apply(source, edits))
        except EditRefused:
            pass
        return found


@cache
def injectors() -> dict[str, Injector]:
    found = {}
    for check in all_checks():
        layer, _, name = check.fault.partition(".")
        path = f"sawbones.faults.{layer}.{name.replace('-', '_')}.inject"
        if importlib.util.find_spec(path) is not None:
            module = importlib.import_module(path)
            found[check.fault] = Injector(
                check.fault,
                module.LEVEL,
                module.inject,
                getattr(module, "MAY_LOOK_BETTER", False),
                getattr(module, "TRIAL", ""),
                getattr(module, "REPEATS", True),
            )
    return found
