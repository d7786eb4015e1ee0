"""What every command shares around its work: one line instead of a traceback, Ctrl-C, and readers
that leave.

Exit status: 2 for what the user can mend and for a bug of ours, 4 for Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from sawbones.observe import ctrl_c
from sawbones.schema.errors import SawbonesError

RAISE = "SAWBONES_RAISE"  # our own tests want to see the traceback of an unexpected error
INTERRUPTED = 4
Command = Callable[[list[str]], None]


def usage_error(text: str) -> NoReturn:
    """One line with the value that was given and what to do."""
    if ctrl_c.came():  # what failed was interrupted: no mistake of the user's
        raise KeyboardInterrupt
    print(f"sawbones: {' '.join(text.split())}", file=sys.stderr)
    raise SystemExit(2)


def guarded(command: Command, args: list[str]) -> None:
    try:
        with reader_may_leave():
            command(args)
            _flush()
    except KeyboardInterrupt:
        if args[:1] == ["run"]:
            raise  # the script's own end, and its own status
        print("sawbones: interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except SawbonesError as error:
        usage_error(str(error))
    except OSError as error:
        if os.environ.get(RAISE):
            raise
        usage_error(_told(error))
    except Exception as error:
        if ctrl_c.came():
            raise SystemExit(INTERRUPTED) from None
        if os.environ.get(RAISE):
            raise
        usage_error(
            f"{type(error).__name__}: {error}. This is a bug of Sawbones, not of your script. "
            f"The details, for a bug report: {_details()}"
        )


def as_process(command: Command, args: list[str]) -> None:
    """`run` leaves signals and streams alone: they belong to the user's script."""
    if args[:1] == ["run"]:
        _as_the_script(command, args)
        return
    ctrl_c.install()
    _tolerant_streams()
    try:
        guarded(command, args)
    finally:
        # What is left is the interpreter's own end, where Ctrl-C could only print a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _as_the_script(command: Command, args: list[str]) -> None:
    """Ctrl-C ends it as it ends bare Python: by the signal, once all else is done. The script's
    traceback has been shown already.
    """
    try:
        guarded(command, args)
    except KeyboardInterrupt:
        sys.excepthook = lambda *_: None
        raise


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """`sawbones faults | head -1`: who has read enough closes the pipe, and that is no error."""
    try:
        yield
        _flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain there.
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _tolerant_streams() -> None:
    """A locale without the characters of a report, or no standard output at all, costs characters
    and not the report.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace" if _is_unicode(stream) else "replace")


def _is_unicode(stream: object) -> bool:
    return str(getattr(stream, "encoding", "")).lower().startswith("utf")


def _told(error: OSError) -> str:
    if error.filename is None:
        return f"{error.strerror or error}"
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def _details() -> str:
    try:
        number, path = tempfile.mkstemp(prefix="sawbones-error-", suffix=".txt")
        with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            traceback.print_exc(file=file)
    except OSError:
        return f"set {RAISE}=1 and call it again"
    return path
