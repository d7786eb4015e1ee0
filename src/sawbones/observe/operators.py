"""The stream of operators: the one function mode, through which every call of torch passes while it
is on. A subscriber stands for the operator, calls it, and returns what the caller gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)

from sawbones.observe.interrupts import HOLDING

Subscriber = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]
Hearing = Callable[[Any, Sequence[Any], Mapping[str, Any], Any], Any]


class OperatorStream(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    def __init__(self, subscriber: Subscriber) -> None:
        super().__init__()
        self._subscriber = subscriber
        self._is_on = False

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        # torch restores gradient mode through here, too: an alarm must not come in between
        try:
            return self._subscriber(func, args, kwargs or {})
        finally:
            if HOLDING.waiting and not HOLDING.depth:
                HOLDING.deliver()

    def start(self) -> None:
        self._is_on = True
        _push_mode(self)

    def stop(self) -> None:
        if self._is_on:
            self._is_on = False
            _ended.append(self)
            take_off_ended()

    def _take_off(self) -> bool:
        """Modes of others may lie on top: they stay."""
        if not any(mode is self for mode in _get_current_function_mode_stack()):
            return False
        above = []
        while (top := _pop_mode()) is not self:
            above.append(top)
        for other in reversed(above):
            _push_mode(other)
        return True


# Streams that were stopped inside of a function which they were asked about: there torch has put
# them aside, and it puts them back on the way out.
_ended: list[OperatorStream] = []


def take_off_ended() -> None:
    """Asked again and again, as nobody is told when torch has put a mode back."""
    if _ended:
        _ended[:] = [stream for stream in _ended if not stream._take_off()]


HOLDING.bridges.add(OperatorStream.__torch_function__.__code__)


class Hearings:
    """How long was listened, in all: time that is none of the script's own."""

    spent_s = 0.0


def after(hearing: Hearing) -> Subscriber:
    """Hears of each result, and may return another one instead of None."""

    def subscriber(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        began = perf_counter()
        instead = hearing(func, args, kwargs, result)
        Hearings.spent_s += perf_counter() - began
        return result if instead is None else instead

    return subscriber
