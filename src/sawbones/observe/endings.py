"""How a run is ended from inside, between two steps."""

from __future__ import annotations


class Finished(BaseException):
    """The budget of steps or time is used up. Not an Exception: user code must not swallow it."""


class Stopped(KeyboardInterrupt):
    """`--stop-on` ends the run. To the script it is Ctrl-C: what it saves then, it saves now."""
