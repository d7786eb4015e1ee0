"""Updates written by hand: parameters that change in place between two backward passes although no
optimizer stepped.
"""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.census import Census

_LOOKED_AT = 8  # parameters; one update moves them all, so a few small ones tell
_MAX_NODES = 20_000
_REFRESH = 50  # passes after which leaves of the graph are looked up again


class Handwork:
    def __init__(self, census: Census) -> None:
        self._census = census
        self.root: torch.Tensor | None = None  # what the pass in progress is differentiating
        self._leaves: list[torch.Tensor] = []
        self._num_passes = 0
        self._marks: list[tuple[torch.Tensor, float | int]] = []

    def backward_ended(self) -> list[torch.Tensor]:
        """Notes the parameters as they are now, and returns them."""
        root, self.root = self.root, None
        params = self._census.trainable()
        if not params:  # no module: parameters in plain lists and dicts, reached through the graph
            if self._num_passes % _REFRESH < 3 and root is not None:
                self._leaves = leaves_of(root)
            params = self._leaves
        self._num_passes += 1
        self._marks = [(p, _mark(p)) for p in sorted(params, key=lambda p: p.numel())[:_LOOKED_AT]]
        return params

    def changes(self) -> tuple[int, int]:
        """How many were looked at and how many of them have changed since. Asked once."""
        marks, self._marks = self._marks, []
        return len(marks), sum(_mark(p) != before for p, before in marks)


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
