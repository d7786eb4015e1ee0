"""What an optimizer that is written by hand does with its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class UpdatedTensor:
    """Some entries of one parameter, step by step."""

    place: int
    shape: tuple[int, ...]
    dtype: str
    group: int
    before: tuple[tuple[float, ...], ...]
    grad: tuple[tuple[float, ...], ...]
    after: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class BrokenStep:
    """A step that makes NaN or infinity of finite values and gradients."""

    step: int
    place: int
    entries: int
    zero_gradients: int
    largest: float


@dataclass(frozen=True, slots=True)
class UpdateFactor:
    """A number that the update multiplies or divides a tensor by, step by step."""

    op: str
    site: Site | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Updates:
    optimizer: int
    cls: str
    num_params: int
    hyper: tuple[tuple[Mapping[str, Any], ...], ...]  # step by step, the settings of each group
    constants: tuple[float, ...] = ()
    attributes: Mapping[str, float] = field(default_factory=dict)
    counts_steps: bool = False
    switched_off: bool = False
    tensors: tuple[UpdatedTensor, ...] = ()
    broke: tuple[BrokenStep, ...] = ()
    sites: tuple[Site, ...] = ()
    step_site: Site | None = None
    factors: tuple[UpdateFactor, ...] = ()  # of an update without an optimizer
