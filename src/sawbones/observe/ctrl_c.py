"""Ctrl-C as something that is asked for at safe places, not an exception between any two
instructions.

The first Ctrl-C counts. The second, while the first is being dealt with, changes nothing: ending
children and writing the report takes a moment, and an impatient hand must not cost either. From the
third on it is an exception wherever it comes.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_count = 0
_depth = 0  # how many `collected` are open
_note = ""


def came() -> bool:
    return _count > 0


def install() -> None:
    """For a whole process: Ctrl-C raises KeyboardInterrupt as ever, and is counted."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle)


def ignore() -> None:
    """What is left of this process is its end."""
    if signal.getsignal(signal.SIGINT) is _handle:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def collected(note: str = "") -> Iterator[None]:
    """No exception inside: ask `came`. `note` is shown on the first Ctrl-C."""
    global _count, _depth, _note
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    ours = before is _handle
    if not ours:
        _count = 0
        signal.signal(signal.SIGINT, _handle)
    _depth += 1
    _note = note or _note
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _note = ""
        if not ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def delayed() -> Iterator[None]:
    """For what must not come apart: Ctrl-C inside raises KeyboardInterrupt afterwards."""
    before = 0 if signal.getsignal(signal.SIGINT) is not _handle else _count
    with collected():
        yield
    if _count > before and not _depth and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def _handle(number: int, frame: Any) -> None:
    global _count
    _count += 1
    if _note and _count == 1:
        os.write(2, f"sawbones: {_note}\n".encode())
    if _count > 2 or not _depth:
        raise KeyboardInterrupt
