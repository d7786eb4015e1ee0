"""The taxonomy: every fault id with its cause and its signal."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sawbones.schema.errors import SawbonesError

LAYERS = ("data", "pipeline", "model", "loss", "optimizer", "loop", "evaluation", "deployment")


class UnknownFault(SawbonesError):
    """A fault id that the taxonomy does not hold."""


@dataclass(frozen=True, slots=True)
class Fault:
    id: str
    layer: str
    cause: str
    signal: str


@cache
def faults() -> dict[str, Fault]:
    raw = tomllib.loads((files("sawbones.schema") / "faults.toml").read_text(encoding="utf-8"))
    found = {}
    for layer, entries in raw.items():
        for name, entry in entries.items():
            fault_id = f"{layer}.{name}"
            found[fault_id] = Fault(fault_id, layer, entry["cause"], entry["signal"])
    return found


def fault(fault_id: str) -> Fault:
    known = faults()
    if fault_id not in known:
        near = difflib.get_close_matches(fault_id, known, n=3, cutoff=0.4) or sorted(known)[:3]
        raise UnknownFault(
            f"no fault {fault_id!r}. Nearest: {', '.join(near)}. All of them: sawbones faults"
        )
    return known[fault_id]
