"""Parameters that are written outside of an optimizer's step: restored, averaged, broadcast, drawn
again; the lines that do it.

Under `diagnose` on several ranks: what one rank does to its parameters and another does not makes
them differ.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.sites import is_user_file
from sawbones.schema import Site
from sawbones.schema.ranks import Write

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MAX_ROWS = 60
_MAX_FRAMES = 3


class WriteLog:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._rows: dict[
            tuple[Site, ...], list[int]
        ] = {}  # lines, innermost first -> first step, count
        self._known: set[int] = set()
        self._known_at = -1
        self.stepping = False

    def wrote(self, name: str, func: Any, args: Any, site: Any) -> None:
        if (
            self.stepping
            or not args
            or not isinstance(args[0], torch.Tensor)
            or name in ("requires_grad_", "zero_grad_")
        ):
            return
        if name == "__set__" and getattr(func, "__self__", None) is not torch.Tensor.data:
            return
        if self._known_at != self._r.step:  # models and their memory may be new
            self._known_at = self._r.step
            params = self._r.census.trainable()
            self._known = {id(p) for p in params} | {
                p.data_ptr() for p in params if type(p) is torch.nn.Parameter
            }
        target = args[0]
        if id(target) not in self._known and (
            type(target) is not torch.Tensor or target.data_ptr() not in self._known
        ):
            return
        lines = self._lines(sys._getframe(2))
        row = (
            self._rows.setdefault(lines, [self._r.step, 0])
            if lines and len(self._rows) < _MAX_ROWS
            else None
        )
        if row is not None:
            row[1] += 1
            self._r.facts["writes"] = [Write(k, s, c) for k, (s, c) in self._rows.items()]

    def _lines(self, frame: FrameType | None) -> tuple[Site, ...]:
        found: list[Site] = []
        while frame is not None and len(found) < _MAX_FRAMES:
            if is_user_file(frame.f_code.co_filename):
                found.append(self._r.sites.of_frame(frame))
            frame = frame.f_back
        return tuple(found)
