"""How a script's end is printed: as the interpreter would, without frames of ours."""

from __future__ import annotations

import os
import sys
import traceback
from itertools import pairwise
from types import TracebackType
from typing import NoReturn

from sawbones.observe.interrupts import HOLDING
from sawbones.observe.sites import is_own_file

_ERROR_FD = 2


def print_exception(error: BaseException) -> None:
    """What the interpreter does with an exception that nobody caught."""
    _strip(error, set())
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    try:
        _call_hook(error)
    except BaseException as in_hook:
        print("Error in sys.excepthook:", file=sys.stderr)
        _strip(in_hook, {id(error)})
        traceback.print_exception(in_hook)
        print("\nOriginal exception was:", file=sys.stderr)
        traceback.print_exception(error)


def _call_hook(error: BaseException) -> None:
    """The interpreter's own cannot be interrupted; one of the script's can."""
    held = HOLDING.depth
    if sys.excepthook is not sys.__excepthook__:
        HOLDING.depth = 0
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        HOLDING.depth = held


HOLDING.bridges.add(_call_hook.__code__)


def print_exit_text(text: object) -> None:
    if sys.stderr is None:
        os.write(_ERROR_FD, f"{text}\n".encode(errors="replace"))
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # closed by the script


def die_of_interrupt() -> NoReturn:
    """Ends the process as Ctrl-C does: by the signal, once the interpreter has cleaned up."""
    shown = sys.excepthook

    def silent(*_: object) -> None:
        sys.excepthook = shown  # the traceback was printed when the script ended

    sys.excepthook = silent
    raise KeyboardInterrupt


def _strip(error: BaseException | None, seen: set[int]) -> None:
    """Takes our frames out of the tracebacks of an exception and of what led to it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without_own(error.__traceback__)
    _strip(error.__cause__, seen)
    _strip(error.__context__, seen)
    for part in getattr(error, "exceptions", ()):
        if isinstance(part, BaseException):
            _strip(part, seen)


def _without_own(tb: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while tb is not None:
        if not is_own_file(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        elif tb.tb_next is not None and not _imports(tb.tb_next):
            # Python takes an import's own frames out, but not where ours stands in their middle.
            while kept and _imports(kept[-1]):
                kept.pop()
        tb = tb.tb_next
    for this, after in pairwise(kept):
        this.tb_next = after
    if kept:
        kept[-1].tb_next = None
    return kept[0] if kept else None


def _imports(tb: TracebackType) -> bool:
    return tb.tb_frame.f_code.co_filename.startswith("<frozen importlib.")
