"""Arrivals: what a step was fed. A batch from a loader, or, without one, what the loop's frame gave to its model."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.sites import is_user_file

_SCALARS = (bool, int, float, str)
_MAX_VARIABLES = 400
_MAX_TEXT = 200
_user_code: dict[Any, bool] = {}


@dataclass
class Arrival:
    step: int
    microstep: int
    kind: str  # "loader", "ahead" (a loader that is a batch ahead of the loop) or "forward"
    key: list[Any]  # by which a rebuilt run knows the same place: file, line, data set, its size
    value: Any
    rng: dict[str, Any]
    scalars: dict[str, Any] = field(default_factory=dict)  # plain variables of the loop, at its first model call
    versions: tuple[int, ...] = ()
    fetched: tuple[int, int] = (0, 0)  # step and microstep in which it came
    used: bool = True  # False while a batch that came ahead waits for its step

    def tensors(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in(self.value)]

    def num_bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors())

    def changed_since(self) -> bool:
        return versions_of(self.tensors()) != self.versions


def versions_of(tensors: list[torch.Tensor]) -> tuple[int, ...]:
    return tuple(t._version if not t.is_inference() else 0 for t in tensors)


def loop_frame(start: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code."""
    frame = start
    while frame is not None:
        code = frame.f_code
        known = _user_code.get(code)
        if known is None:
            known = _user_code[code] = is_user_file(code.co_filename)
        if known:
            return frame
        frame = frame.f_back
    return None


def caller(depth: int = 2) -> FrameType | None:
    return loop_frame(sys._getframe(depth))


def scalars_of(frame: FrameType | None) -> dict[str, Any]:
    if frame is None:
        return {}
    found = frame.f_locals
    if len(found) > _MAX_VARIABLES:
        return {}
    return {
        k: v
        for k, v in found.items()
        if type(v) in _SCALARS and not k.startswith("__") and (type(v) is not str or len(v) < _MAX_TEXT)
    }


def tensors_beside(frame: FrameType | None, inputs: list[torch.Tensor]) -> dict[str, Any]:
    """Variables of the loop that hold as many examples as the model is given: targets, masks, indices."""
    if frame is None:
        return {}
    sizes = {t.shape[0] for t in inputs if t.dim()}
    found: dict[str, Any] = {}
    variables = frame.f_locals
    if len(variables) > _MAX_VARIABLES:
        return {}
    for name, value in variables.items():
        kind = type(value)
        if kind is torch.Tensor:
            if not value.requires_grad and value.dim() and value.shape[0] in sizes:
                found[name] = value
        elif kind in (tuple, list, dict) and 0 < len(value) <= 8:
            inner = tensors_in(value)
            if inner and all(not t.requires_grad and t.dim() and t.shape[0] in sizes for _, t in inner):
                found[name] = value
    return found


def cloned(value: Any, depth: int = 0) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if depth > 4:
        return value
    if type(value) in (list, tuple):
        return type(value)(cloned(v, depth + 1) for v in value)
    if type(value) is dict:
        return {k: cloned(v, depth + 1) for k, v in value.items()}
    return value
