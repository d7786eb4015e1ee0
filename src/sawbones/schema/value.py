"""A tensor of a deep step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor at one moment. `id` is equal for the same tensor within one deep step."""

    id: int
    shape: tuple[int, ...]
    dtype: str
    min: float | None = None  # of the finite elements
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    nonfinite: int = 0
    requires_grad: bool = False
