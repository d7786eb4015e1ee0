"""Line by line through the script's own functions, until it trains: the interpreter's trace
function, which costs one call for every Python function that is called meanwhile.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sawbones.observe.sites import is_user_file
from sawbones.observe.sources.imports import UnwatchedImports
from sawbones.schema.sources import Sources

if TYPE_CHECKING:
    from sawbones.observe.sources.log import SourceLog

MAX_CALLS = 30  # of one function: more are those of single rows
MAX_LINES = 400_000  # of one call, half a second of watching: a loop over single rows
MAX_VISITS = 12  # of one line
MAX_CALLS_IN_ALL = 20_000_000  # of any function, libraries included: some seconds of watching


class LineWatch:
    """`log` is made when the script has imported NumPy: before that it holds no arrays."""

    def __init__(self, make_log: Callable[[], SourceLog]) -> None:
        self._make_log = make_log
        self.log: SourceLog | None = None
        self._is_user: dict[types.CodeType, bool] = {}
        self._enter = self._make_enter()
        self._imports = UnwatchedImports(self._enter)
        self._calls: dict[types.CodeType, int] = {}
        self._visits: dict[tuple[types.CodeType, int], int] = {}
        self._last: dict[types.FrameType, int] = {}
        self._lines: dict[types.FrameType, int] = {}
        self._depth: dict[types.FrameType, int] = {}
        self._busy = False
        self._num_calls = 0
        self.failed = ""

    def start(self) -> None:
        if sys.gettrace() is None:  # a debugger or a coverage tool goes first
            sys.settrace(self._enter)
            self._imports.install()
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self.stop)

    def stop(self) -> None:
        self._imports.remove()
        if sys.gettrace() == self._enter:
            sys.settrace(None)
        self._last.clear()
        self._lines.clear()
        self._depth.clear()

    def _make_enter(self) -> Callable[[types.FrameType, str, Any], Any]:
        """The trace function: a closure, since it is called for every function of any library."""
        is_user = self._is_user

        def enter(frame: types.FrameType, event: str, arg: Any) -> Any:
            self._num_calls += 1
            code = frame.f_code
            known = is_user.get(code)
            if known is None:
                known = is_user[code] = is_user_file(code.co_filename)
            return self._entered(frame) if known else None

        return enter

    def _entered(self, frame: types.FrameType) -> Any:
        if self._busy:
            return None
        code = frame.f_code
        if self._is_over():
            self.stop()
            return None
        calls = self._calls[code] = self._calls.get(code, 0) + 1
        if calls > MAX_CALLS:
            return None
        self._last[frame] = frame.f_lineno
        self._depth[frame] = self._depth_of(frame)
        return self._step

    def _is_over(self) -> bool:
        if self._num_calls > MAX_CALLS_IN_ALL:
            self.failed = "too much Python code runs before the training"
        return bool(self.failed) or (self.log is not None and (self.log.done or bool(self.log.why)))

    def _depth_of(self, frame: types.FrameType) -> int:
        depth, outer = 0, frame.f_back
        while outer is not None:
            depth += self._is_user.get(outer.f_code, False)
            outer = outer.f_back
        return depth

    def _step(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "exception" or self._busy:
            return self._step
        if self._is_over():
            self.stop()
            return None
        line = self._last.get(frame, frame.f_lineno)
        self._last[frame] = frame.f_lineno
        count = self._lines[frame] = self._lines.get(frame, 0) + 1
        if count > MAX_LINES:
            frame.f_trace_lines = False
        key = (frame.f_code, frame.f_lineno)
        visits = self._visits[key] = self._visits.get(key, 0) + 1
        if event != "return" and visits > MAX_VISITS:
            return self._step
        self._busy = True
        try:
            self._look(frame, line)
        except Exception as error:  # the script goes on as if nobody had looked
            self.failed = f"{type(error).__name__}: {error}"
            self.stop()
        finally:
            self._busy = False
        if event == "return":
            for table in (self._last, self._lines, self._depth):
                table.pop(frame, None)
        return self._step

    def _look(self, frame: types.FrameType, line: int) -> None:
        if self.log is None:
            if "numpy" not in sys.modules or not hasattr(sys.modules["numpy"], "ndarray"):
                return
            self.log = self._make_log()
        self.log.look(frame, line, self._depth.get(frame, 0))

    def called(self, given: Any, phase: str, loaded: Any, model: Any = None) -> None:
        """A top-level model call began, after a loader gave `loaded`."""
        from sawbones.observe.fingerprints import tensors_in  # torch: by now the script has it

        if self.log is not None:
            self.log.called(tensors_in(given), phase, [t for _, t in tensors_in(loaded)], model)
            if self.log.done:
                self.stop()

    def asked(self, target: Any) -> None:
        """A loss was given this target for the latest model call."""
        if self.log is not None:
            self.log.asked(target)

    @property
    def waits(self) -> bool:
        """Whether the targets of the latest training call are not known yet."""
        return self.log is not None and self.log.waits

    def met(self, operands: Any) -> None:
        """Answers of the latest call and something else were subtracted, in a loss by hand."""
        pair = list(operands[:2])
        if self.log is None or len(pair) < 2 or not all(hasattr(t, "requires_grad") for t in pair):
            return
        plain = [t for t in pair if not t.requires_grad]
        if len(plain) == 1 and plain[0].numel() == (pair[0].numel() or pair[1].numel()):
            self.log.is_loss_by_hand = True
            self.log.asked(plain[0])

    def record(self) -> Sources:
        self.stop()
        if self.failed:
            return Sources(f"the script's lines were not followed ({self.failed})")
        if self.log is None:
            return Sources("another tool traces the script, or no array was seen")
        return self.log.record()
