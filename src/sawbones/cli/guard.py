"""What every command shares around its work: one line instead of a traceback, Ctrl-C, and readers
that leave.

Exit status: 2 for what the user can mend and for a bug of ours, 4 for Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import NoReturn

from sawbones.cli.printing import say
from sawbones.observe import ctrl_c

RAISE = "SAWBONES_RAISE"  # our own tests want to see the traceback of an unexpected error
INTERRUPTED = 4
Command = Callable[[list[str]], None]


def usage_error(text: str) -> NoReturn:
    """One line with the value that was given and what to do."""
    if ctrl_c.came():  # what failed was interrupted: no mistake of the user's
        raise KeyboardInterrupt
    say(f"sawbones: {' '.join(text.split())}", error=True)
    raise SystemExit(2)


def guarded(command: Command, args: list[str]) -> None:
    try:
        _explained(command, args)
    except KeyboardInterrupt:
        if args[:1] == ["run"]:
            raise  # the script's own end, and its own status
        ctrl_c.ignore()
        print("sawbones: interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _explained(command: Command, args: list[str]) -> None:
    """Whatever goes wrong becomes one line."""
    # The script of `run` may close its standard output, or fail to flush it: the interpreter's
    # own end says so.
    streams = nullcontext() if args[:1] == ["run"] else reader_may_leave()
    try:
        with streams:
            command(args)
    except Exception as error:
        from sawbones.schema.errors import SawbonesError  # brings NumPy, which --help does without

        if isinstance(error, SawbonesError):
            usage_error(str(error))
        if ctrl_c.came():
            raise KeyboardInterrupt from None
        if os.environ.get(RAISE):
            raise
        if isinstance(error, OSError):
            if error.filename is None:  # standard output itself: a full disk behind it
                _print_no_more()
            usage_error(_told(error))
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
        ctrl_c.ignore()
        forget_interrupt()


def forget_interrupt() -> None:
    """CPython notes a KeyboardInterrupt that passes through the evaluation of a string (a
    namedtuple makes itself by one) and then ends by SIGINT whatever status was asked for. The next
    evaluation clears the note.
    """
    exec("pass")


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
    except BrokenPipeError:
        _print_no_more()
    finally:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            _print_no_more()


def _print_no_more() -> None:
    """The interpreter flushes once more at its end, and would complain there."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


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
    import tempfile
    import traceback

    try:
        number, path = tempfile.mkstemp(prefix="sawbones-error-", suffix=".txt")
        with open(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            traceback.print_exc(file=file)
    except OSError:
        return f"set {RAISE}=1 and call it again"
    return path
