"""Updates written by hand: parameters that change in place between two backward passes although no
optimizer stepped, or that others have taken the place of, and whether the gradients that such an
update used were cleared before the next.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

from sawbones.observe.census import Census

_LOOKED_AT = 8  # parameters; one update moves them all, so a few small ones tell
_MAX_NODES = 20_000
_REFRESH = 50  # passes after which leaves of the graph are looked up again
_LOOKS = 8  # passes without any change, after which nobody is expected to replace parameters


@dataclass(frozen=True)
class Changes:
    """Between two backward passes."""

    looked: int  # parameters
    changed: int
    uncleared: int | None  # of those that changed: their gradient held what the last update used
    # (None: on a device, where no value is read)
    replaced: tuple[torch.Tensor, ...] = ()  # what stands where the parameters stood


class Handwork:
    def __init__(self, census: Census) -> None:
        self._census = census
        self.root: torch.Tensor | None = None  # what the pass in progress is differentiating
        self.asked: list[torch.Tensor] = []  # what torch.autograd.grad is asked about
        self._leaves: list[torch.Tensor] = []
        self._params: list[torch.Tensor] = []
        self._looks = 0
        self._num_passes = 0
        self._marks: list[tuple[torch.Tensor, float | int, _Grad]] = []
        self._used: dict[int, torch.Tensor] = {}  # parameters whose gradient an update has used

    def backward_ended(self) -> list[torch.Tensor]:
        """Notes the parameters as they are now, and returns them."""
        root, self.root = self.root, None
        params = self.asked or self._census.trainable()
        if not params:  # no module: parameters in plain lists and dicts, reached through the graph
            if self._num_passes % _REFRESH < 3 and root is not None:
                self._leaves = leaves_of(root)
            params = self._leaves
        self._num_passes += 1
        self._params = params
        self._marks = [
            (p, _mark(p), _grad(p)) for p in sorted(params, key=lambda p: p.numel())[:_LOOKED_AT]
        ]
        return params

    def changes(self, root: torch.Tensor | None) -> Changes:
        """What has changed since the last backward pass, when the next begins. Asked once."""
        marks, self._marks = self._marks, []
        moved = {id(p) for p, before, _ in marks if _mark(p) != before}
        uncleared = len(moved & self._used.keys())
        self._used = {
            id(p): p
            for p, _, grad in marks
            if (id(p) in moved or id(p) in self._used) and _is_left(p, grad)
        }
        on_host = all(p.device.type == "cpu" for p, _, _ in marks)
        replaced = self._replaced(root) if marks and not moved else ()
        changed = len(moved) or _num_changed(marks, self._params, replaced)
        if replaced and changed:
            self._looks, self._leaves = 0, list(replaced)
        return Changes(
            len(marks), changed, uncleared if on_host else None, replaced if changed else ()
        )

    def _replaced(self, root: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
        """Others of the same shapes that the pass which begins differentiates in their place."""
        if self._census.trainable() and not self.asked:
            return ()  # those of a module are changed in place
        self._looks += 1
        if (root is None and not self.asked) or self._looks > _LOOKS:
            return ()
        now = self.asked or (leaves_of(root) if root is not None else [])
        alike = [p.shape for p in now] == [p.shape for p in self._params]
        return tuple(now) if alike and any(map(operator.is_not, now, self._params)) else ()


def _num_changed(
    marks: list[tuple[torch.Tensor, float | int, _Grad]],
    params: list[torch.Tensor],
    replaced: tuple[torch.Tensor, ...],
) -> int:
    """How many of what is marked have other values in those that took their places."""
    new = {id(p): other for p, other in zip(params, replaced, strict=False)}
    return sum(id(p) in new and _mark(new[id(p)]) != before for p, before, _ in marks)


_Grad = tuple[int, int] | None  # identity and version of a gradient


def _grad(parameter: torch.Tensor) -> _Grad:
    grad = parameter.grad
    return (id(grad), grad._version) if grad is not None else None


def _is_left(parameter: torch.Tensor, grad: _Grad) -> bool:
    """The gradient is what the backward pass left: not replaced, not written to, and not zero
    (what goes through `.data` shows in no version).
    """
    now = parameter.grad
    if grad is None or now is None or _grad(parameter) != grad:
        return False
    plain = type(now) is torch.Tensor and now.layout is torch.strided
    return plain and now.device.type == "cpu" and bool(now.detach().any())


def _mark(parameter: torch.Tensor) -> float | int:
    """On a device the version, which costs nothing; in host memory the sum, which also sees what
    went through `.data`.
    """
    if parameter.device.type != "cpu":
        return parameter._version
    total = float(parameter.detach().sum())
    return total if total == total else parameter._version  # NaN differs from itself


def leaves_of(root: torch.Tensor) -> list[torch.Tensor]:
    """Tensors that this graph accumulates gradients into, each once, in the order they are
    reached.
    """
    seen: set[Any] = set()
    found: list[torch.Tensor] = []
    waiting = [root.grad_fn]
    while waiting and len(seen) < _MAX_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            found.append(variable)
        waiting.extend(following for following, _ in node.next_functions)
    return found
