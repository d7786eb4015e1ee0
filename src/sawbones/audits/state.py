"""What earlier audits of the same windows said, in a file: an alert is given once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sawbones.audits.options import AuditError
from sawbones.audits.windows import Window, shown

VERSION = 1


@dataclass
class State:
    by: str
    time: str
    windows: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def new(self, windows: Iterable[Window]) -> list[Window]:
        """Windows that were not judged yet, or hold other rows than then."""
        return [w for w in windows if self.windows.get(shown(w.start), {}).get("rows") != w.rows]

    @property
    def num_alerts(self) -> int:
        return sum(bool(w.get("alert")) for w in self.windows.values())

    def take(self, windows: Iterable[Window], alerts: Iterable[str]) -> None:
        given = set(alerts)
        for window in windows:
            name = shown(window.start)
            row = {k: v for k, v in asdict(window).items() if k != "start"}
            self.windows[name] = {**row, "alert": name in given}


def read_state(path: Path, by: str, time: str) -> State:
    """An empty one where there is no file yet."""
    if not path.exists():
        return State(by, time)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        known = (told["version"], told["by"], told["time"])
        windows = dict(told["windows"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AuditError(f"{path} is no state of sawbones audit shift: {error}") from error
    if known != (VERSION, by, time):
        raise AuditError(
            f"{path} was written for --by {known[1]} --time {known[2]}. Use another file for "
            f"--by {by} --time {time}, or remove it"
        )
    return State(by, time, windows)


def write_state(path: Path, state: State) -> None:
    """Exchanged whole: a job that is killed leaves the old one."""
    told = {"version": VERSION, "by": state.by, "time": state.time, "windows": state.windows}
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(beside, path)
