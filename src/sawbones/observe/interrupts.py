"""Signals that arrive while our own code runs wait until it is done.

A handler of the script's may raise: an alarm as a time limit, Ctrl-C. Inside of a hook that would
leave gradient mode, function modes and random streams as the hook had them at that moment, and the
exception would look like one of ours. So handlers are called between our code and the script's
only, which is where the script could have been interrupted without us.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from sawbones.observe.sites import is_own_file

_Handler = Callable[[int, FrameType | None], Any]


class Holding:
    """`depth` counts how deep the thread that trains is in our code; no other thread changes it."""

    __slots__ = ("bridges", "depth", "thread", "waiting")  # read and written by every hook

    def __init__(self) -> None:
        self.depth = 0
        self.thread = threading.get_ident()
        self.waiting: set[int] = set()
        # functions of ours that the script's calls pass through, and which deliver at their end
        self.bridges: set[CodeType] = set()

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.waiting and not self.depth:
            self.deliver()

    def deliver(self) -> None:
        number = self.waiting.pop()
        handler = _get(number)
        try:
            if callable(handler):
                handler(number, None)
        finally:
            if self.waiting:  # the one before may have raised: that does not cost the next its call
                self.deliver()


HOLDING = Holding()


class Held:
    """Stands in for a handler; the script is shown the one that it knows."""

    def __init__(self, handler: _Handler, shown: Any = None) -> None:
        self.handler = handler
        self.shown = handler if shown is None else shown

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        is_ours = HOLDING.depth or (frame is not None and frame.f_code in HOLDING.bridges)
        if is_ours and HOLDING.thread == threading.get_ident():
            HOLDING.waiting.add(number)
            return None
        return self.handler(number, _frame_of_script(frame))


def _frame_of_script(frame: FrameType | None) -> FrameType | None:
    found = frame if frame is not None else sys._getframe(1)
    while found.f_back is not None and is_own_file(found.f_code.co_filename):
        found = found.f_back
    return found


_set, _get = _signal.signal, _signal.getsignal
_installed = False


def _set_held(signalnum: Any, handler: Any, /) -> Any:
    return _shown(_set(signalnum, Held(handler) if callable(handler) else handler))


def _get_shown(signalnum: Any, /) -> Any:
    return _shown(_get(signalnum))


def _shown(handler: Any) -> Any:
    return handler.shown if isinstance(handler, Held) else handler


def install() -> None:
    """Only the main thread may set handlers: from another one, all stay as they are."""
    global _installed
    if _installed or threading.current_thread() is not threading.main_thread():
        return
    _installed = True
    HOLDING.thread = threading.get_ident()
    for number in _signal.valid_signals():
        handler = _get(number)
        if callable(handler):
            _set(number, Held(handler))
    # `signal.signal` and `signal.getsignal` look these up here, so they stay what they are.
    _signal.signal, _signal.getsignal = _set_held, _get_shown


def set_own(number: int, handler: _Handler) -> None:
    """A handler of ours for a signal that the script has left to the system."""
    _set(number, Held(handler, shown=_signal.SIG_DFL))


def restore() -> None:
    global _installed
    if not _installed or threading.current_thread() is not threading.main_thread():
        return
    _installed = False
    HOLDING.waiting.clear()
    _signal.signal, _signal.getsignal = _set, _get
    for number in _signal.valid_signals():
        handler = _get(number)
        if isinstance(handler, Held):
            _set(number, handler.shown)


_mask: list[Any] = []  # of blocked signals, before a fork


def _before_fork() -> None:
    # Python forgets signals that reach a child before it has set itself up. One that the system
    # would have answered must not be lost because the handler is ours.
    handler = _get(_signal.SIGTERM)
    if isinstance(handler, Held) and handler.shown is _signal.SIG_DFL:
        _mask.append(_signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTERM]))


def _after_fork() -> None:
    if _mask:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, _mask.pop())


def _in_fork() -> None:
    """A process that the script forks runs none of our code: SIGTERM ends it at once, as ever."""
    restore()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_fork)
