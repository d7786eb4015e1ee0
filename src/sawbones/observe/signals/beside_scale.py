"""Terms of a loss that go past the gradient scaler: the root of a backward pass is a sum of a scaled
loss and of something else that leads to parameters.

The autograd graph is followed from the root, and no further where a scaled value is met. What is
reached besides is reached without the scale, but for a constant that stands before the term. Only
the first backward passes whose root is not itself a scaled value are looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from sawbones.observe.census import Census
from sawbones.observe.fingerprints import tensors_in

_LOOKS = 8
_MOST_NODES = 20_000
_MOST_PARAMETERS = 64
# They hand a gradient on as it is; what a mean divides by is part of the term.
_PASSES = (
    "Sum",
    "Mean",
    "View",
    "Reshape",
    "UnsafeView",
    "Squeeze",
    "Unsqueeze",
    "Select",
    "Unbind",
    "Stack",
    "Cat",
    "ToCopy",
    "Clone",
    "Alias",
    "Expand",
)


Scaled = Collection[tuple[Any, Any]]  # what a scaler gave, and what it was given


class BesideScale:
    def __init__(self) -> None:
        self._looks = 0

    def note(
        self, root: torch.Tensor | None, scaled: Scaled, census: Census, data: dict[str, Any]
    ) -> None:
        if scaled and root is not None and not data["scaled"]:
            found = self.of(root, scaled, census)
            if found is not None:
                data["beside"] = found

    def of(self, root: torch.Tensor, scaled: Scaled, census: Census) -> dict[str, Any] | None:
        """The largest constant before a term that goes past the scaler, and the parameters that
        such terms reach; None where nothing does, or where this is not known.
        """
        nodes = {t.grad_fn for result, _ in scaled for _, t in tensors_in(result)} - {None}
        if not nodes or root.grad_fn is None or root.grad_fn in nodes or self._looks >= _LOOKS:
            return None
        self._looks += 1
        try:
            terms, met = _terms(root.grad_fn, nodes)
        except RuntimeError:  # a saved value that was changed in place, or freed
            return None
        terms = [(factor, node) for factor, node in terms if factor != 0]
        if not met or not terms:
            return None
        leaves = _leaves([node for _, node in terms], nodes)
        if not leaves:
            return None
        return {
            "factor": max(factor for factor, _ in terms),
            "tensors": sorted(census.tensor_index(p) for p in leaves[:_MOST_PARAMETERS]),
        }


def _terms(root: Any, scaled: set[Any]) -> tuple[list[tuple[float, Any]], bool]:
    """(constant before it, where it begins) of each term of the root that is not a scaled value,
    and whether one is.
    """
    found: list[tuple[float, Any]] = []
    waiting, met = [(1.0, root)], False
    while waiting and len(found) < _MOST_PARAMETERS:
        factor, node = waiting.pop()
        if node in scaled:
            met = True
            continue
        constants = _constants(node)
        if constants is None:
            found.append((factor, node))
            continue
        for (following, _), constant in zip(node.next_functions, constants, strict=False):
            if following is not None:
                waiting.append((factor * constant, following))
    return found, met and not waiting


def _constants(node: Any) -> list[float] | None:
    """By what each operand of a linear operator is multiplied, in size; None for another one. A
    constant that is not on the CPU cannot be read without waiting for it: infinite.
    """
    kind = node.name().rstrip("0123456789").removesuffix("Backward")
    number = len(node.next_functions)
    if kind in ("Add", "Sub"):
        return [1.0, abs(float(node._saved_alpha))][:number]
    if kind == "Neg" or kind in _PASSES:
        return [1.0] * number
    if kind == "Mul" and sum(f is not None for f, _ in node.next_functions) == 1:
        first = node.next_functions[0][0] is not None
        return [_size(node._saved_other if first else node._saved_self)] * number
    if kind == "Div" and all(following is None for following, _ in node.next_functions[1:]):
        return [1 / max(_size(node._saved_other), 1e-30)] * number
    return None


def _size(constant: Any) -> float:
    if constant is None:
        return float("inf")
    if isinstance(constant, torch.Tensor):
        if constant.device.type != "cpu" or not 0 < constant.numel() <= _MOST_NODES:
            return float("inf")
        return float(constant.detach().abs().max())
    return abs(float(constant))


def _leaves(begin: list[Any], scaled: set[Any]) -> list[torch.Tensor]:
    """What terms lead to; nothing where the graph is too large."""
    found, seen, waiting = [], set(begin), list(begin)
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            found.append(variable)
        for following, _ in node.next_functions:
            if following is None or following in seen:
                continue
            if following in scaled or len(seen) > _MOST_NODES:
                return []  # made of the scaled loss itself, as a penalty on its gradients is
            seen.add(following)
            waiting.append(following)
    return found
