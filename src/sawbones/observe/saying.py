"""Our own lines on the terminal. They go to the error stream that the process was started with, and
nowhere else: a script may close it, redirect it into a file of its own or capture it.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from sawbones.masking import shown

_ERROR_FD = 2
_stream: TextIO | None = None
_file: tuple[int, int] | None = None  # device and inode behind it


def keep_stream() -> None:
    """Before the script begins: this is the stream that our lines go to."""
    global _stream, _file
    _stream, _file = sys.stderr, _behind()


def say(text: str) -> None:
    if _file is not None and _behind() != _file:
        return  # the script has closed it, or put a file or pipe of its own in its place
    stream = _stream if _file is not None else sys.stderr
    if stream is None:
        return
    try:
        print(shown(text), file=stream, flush=True)
    except (OSError, ValueError):
        pass  # closed, or nobody reads it any more


def _behind() -> tuple[int, int] | None:
    try:
        found = os.fstat(_ERROR_FD)
    except OSError:
        return None
    return found.st_dev, found.st_ino
