"""Which processes are meant: those named, and of a launcher its ranks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    pid: int
    rank: int | None  # as its launcher set it
    folder: str  # in which it runs; places are shown from there

    def cpu_seconds(self) -> float:
        """Of all its threads since it began; 0 where it is gone."""
        stat = _stat(self.pid)
        return (int(stat[11]) + int(stat[12])) / TICKS if stat else 0.0


def python_processes(pids: Iterable[int]) -> list[Process]:
    """Those with a rank among the named ones and their descendants, by rank; without any rank,
    the named ones themselves.
    """
    named = list(dict.fromkeys(pids))
    family = [pid for pid in _with_descendants(named) if _is_python(pid)]
    found = [_process(pid) for pid in family]
    ranked = sorted((p for p in found if p.rank is not None), key=lambda p: (p.rank, p.pid))
    # A worker of a loader inherits the rank of its process: the eldest is the rank itself.
    ranks: dict[int, Process] = {}
    for process in ranked:
        assert process.rank is not None
        ranks.setdefault(process.rank, process)
    return list(ranks.values()) or [p for p in found if p.pid in named]


def exists(pid: int) -> bool:
    return (PROC / str(pid)).exists()


def _process(pid: int) -> Process:
    try:
        folder = os.readlink(PROC / str(pid) / "cwd")
    except OSError:
        folder = ""
    return Process(pid, _rank(pid), folder)


def _rank(pid: int) -> int | None:
    """Nothing else of another process' environment is looked at."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for entry in entries:
        if entry.startswith(b"RANK=") and entry[5:].isdigit():
            return int(entry[5:])
    return None


def _is_python(pid: int) -> bool:
    try:
        return "python" in os.path.basename(os.readlink(PROC / str(pid) / "exe"))
    except OSError:
        return False


def _with_descendants(pids: list[int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop(0)
        if pid not in found:
            found.append(pid)
            waiting += sorted(children.get(pid, ()))
    return found


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold blanks and brackets: state, parent, ..."""
    try:
        return (PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []
