"""How an update without an optimizer object is computed: the lines that made a new value of a
parameter, and the numbers that tensors were multiplied and divided by on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Site

_MAX_OPS = 3000  # of one update
_MAX_BYTES = 1 << 27  # of what they made, which is kept until the update is over
_MULTIPLIES = frozenset({"mul", "mul_", "div", "div_"})
_WEIGHS = ("alpha", "value")  # arguments that multiply the term that is added


@dataclass(frozen=True)
class _Made:
    op: str
    site: Site | None
    number: float | None
    of: tuple[_Made, ...]
    result: torch.Tensor  # kept, so that nothing else gets its identity


@dataclass(frozen=True)
class Link:
    """One operator on the way to a new value."""

    op: str
    site: Site | None
    number: float | None  # what it multiplies or divides by


class UpdateOps:
    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._made: dict[int, _Made] = {}
        self._num_ops = self._bytes = 0
        self.is_open = False

    def begin(self) -> None:
        self.end()
        self.is_open = True

    def end(self) -> None:
        self._made.clear()
        self._num_ops = self._bytes = 0
        self.is_open = False

    def heard(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        if not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return
        if torch._C._functorch.is_functorch_wrapped_tensor(result):
            self.is_open = False  # the next pass has begun
            return
        self._num_ops += 1
        self._bytes += result.numel() * result.element_size()
        if self._num_ops > _MAX_OPS or self._bytes > _MAX_BYTES:
            self.end()
            return
        given = [t for _, t in tensors_in((args, kwargs))]
        of = tuple(made for t in given if (made := self._made.get(id(t))) is not None)
        number = _number(name, args, kwargs)
        site = self._sites.find()
        self._made[id(result)] = _Made(name, site, number, of, result)

    def behind(self, value: torch.Tensor) -> list[Link]:
        """The operators that a new value came through, the latest first."""
        waiting, seen, found = [self._made.get(id(value))], set[int](), list[Link]()
        while waiting:
            made = waiting.pop(0)
            if made is not None and id(made) not in seen:
                seen.add(id(made))
                found.append(Link(made.op, made.site, made.number))
                waiting += made.of
        return found


def _number(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float | None:
    weight = next((kwargs[key] for key in _WEIGHS if key in kwargs), None)
    if weight is not None:
        return _plain(weight)
    if name in _MULTIPLIES and len(args) == 2:
        numbers = [n for a in reversed(args) if (n := _plain(a)) is not None]
        return numbers[0] if numbers else None
    return None


def _plain(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type == "cpu":
        return float(value)
    return None
