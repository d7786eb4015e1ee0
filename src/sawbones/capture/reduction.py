"""A single operator made small: fewer entries along every dimension of its tensors, then rounder
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sawbones.capture.minimise import smallest
from sawbones.capture.operators import Call
from sawbones.capture.substitution import map_tensors
from sawbones.observe.fingerprints import tensors_in

MAX_TRIES = 3000
MAX_SIZE = 4096  # entries along one dimension that are looked at


class Reducer:
    def __init__(self, call: Call, holds: Callable[[Call], bool], smaller: bool = True) -> None:
        self._smaller = smaller
        self._call = call.copied()
        self._holds = holds
        self._tries = 0

    def reduced(self) -> Call:
        """The call itself where even an unchanged copy does not show the failure: random numbers,
        state outside of it.
        """
        if not self._smaller or not self._try(self._call):
            return self._call
        for _ in range(2):
            for unit in self._units():
                self._cut(unit)
        for number in range(len(self._call.inputs())):
            self._simplify(number)
        return self._call

    def _try(self, call: Call) -> bool:
        self._tries += 1
        return self._tries <= MAX_TRIES and self._holds(call)

    def _units(self) -> list[list[tuple[int, int]]]:
        """Dimensions that may only be cut together: all of one size first, then each by itself."""
        sizes: dict[int, list[tuple[int, int]]] = {}
        for number, tensor in enumerate(self._call.inputs()):
            for dim, size in enumerate(tensor.shape):
                if 1 < size <= MAX_SIZE:
                    sizes.setdefault(size, []).append((number, dim))
        together = [unit for unit in sizes.values() if len(unit) > 1]
        pairs = [
            [a, b]
            for unit in together
            if len(unit) > 2
            for i, a in enumerate(unit)
            for b in unit[i + 1 :]
            if a[0] != b[0]
        ]
        return [*together, *pairs[:12], *([place] for unit in sizes.values() for place in unit)]

    def _cut(self, unit: list[tuple[int, int]]) -> None:
        inputs = self._call.inputs()
        sizes = {inputs[number].shape[dim] for number, dim in unit}
        if len(sizes) != 1:
            return
        (size,) = sizes
        if size < 2:
            return
        kept = smallest(range(size), lambda keep: self._try(self._with(unit, keep)))
        if len(kept) < size:
            self._call = self._with(unit, kept)

    def _with(self, unit: list[tuple[int, int]], keep: list[int]) -> Call:
        index = torch.tensor(keep)
        dims: dict[int, list[int]] = {}
        for number, dim in unit:
            dims.setdefault(number, []).append(dim)

        def change(number: int, tensor: torch.Tensor) -> torch.Tensor:
            for dim in dims.get(number, ()):
                tensor = tensor.index_select(dim, index.to(tensor.device))
            return tensor

        return replaced(self._call, change)

    def _simplify(self, number: int) -> None:
        tensor = self._call.inputs()[number]
        if not tensor.numel():
            return
        options: list[torch.Tensor] = [torch.zeros_like(tensor)]
        if tensor.is_floating_point():
            options += [torch.ones_like(tensor), _rounded(tensor, 1), _rounded(tensor, 3)]
        for option in options:

            def change(n: int, t: torch.Tensor, option: torch.Tensor = option) -> torch.Tensor:
                return option if n == number else t

            candidate = replaced(self._call, change)
            if self._try(candidate):
                self._call = candidate
                return


def _rounded(tensor: torch.Tensor, digits: int) -> torch.Tensor:
    wide = tensor.detach().double()
    values = [float(f"{v:.{digits}g}") for v in wide.reshape(-1).tolist()]
    return torch.tensor(values, dtype=torch.float64).reshape(tensor.shape).to(tensor.dtype)


def replaced(call: Call, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Call:
    """The call with its n-th tensor replaced, counted as inputs() lists them."""
    order = {path: n for n, (path, _) in enumerate(tensors_in([list(call.args), call.kwargs]))}
    found: Any = map_tensors(
        [list(call.args), call.kwargs],
        lambda path, t: change(order[path], t) if path in order else t,
    )
    return Call(
        call.name,
        tuple(found[0]),
        dict(found[1]),
        None,
        call.site,
        call.in_model,
        call.autocast,
        call.func,
    )
