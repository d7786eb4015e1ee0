"""A child process and everything it started: tied to its parent, found, and ended together.

Two nets, since each has a hole. On Linux the kernel kills a process whose parent is gone
(PR_SET_PDEATHSIG), also after kill -9 of Sawbones itself. And before a child is ended its
descendants are listed, since loader workers share its process group but the ranks of torchrun do
not.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int | None = None) -> None:
    """The kernel kills this process when its parent ends. With `parent`, also when it has ended
    already.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def tie_forks() -> None:
    """What this process forks (loader workers) dies with it.

    The signal comes when the forking thread ends, not the process, so forks of other threads than
    the main one are left alone.
    """
    from_main = True

    def note() -> None:
        nonlocal from_main
        from_main = threading.current_thread() is threading.main_thread()

    def tie() -> None:
        if from_main:
            die_with_parent()

    os.register_at_fork(before=note, after_in_child=tie)


def descendants(pid: int) -> dict[int, str]:
    """Processes below `pid`, each with its start time, which tells it from a later process of the
    same number.
    """
    below: dict[int, list[int]] = {}
    born: dict[int, str] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}  # no /proc: the process group has to do
    for number in numbers:
        known = _stat(number)
        if known is not None:
            below.setdefault(known[0], []).append(number)
            born[number] = known[1]
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for number in below.get(waiting.pop(), ()):
            found[number] = born[number]
            waiting.append(number)
    return found


def parent_of(pid: int) -> int | None:
    known = _stat(pid)
    return known[0] if known is not None else None


def end(child: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """Asked first, so that the recording is closed; then killed, with all descendants."""
    family = descendants(child.pid)
    if child.poll() is None:
        _signal_group(child, signal.SIGTERM)
        try:
            child.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            family |= descendants(child.pid)
    _signal_group(child, signal.SIGKILL)
    child.wait()
    for number, start in family.items():
        known = _stat(number)
        if known is not None and known[1] == start:
            try:
                os.kill(number, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass


def _stat(pid: int) -> tuple[int, str] | None:
    """(parent, start time); the name in between may hold spaces and brackets."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rsplit(")", 1)[1]
            .split()
        )
        return int(fields[1]), fields[19]
    except (OSError, IndexError, ValueError):
        return None


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        pass
