"""What the ranks of a run record of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sawbones.schema.site import Site

GIVEN = "(given) "  # before the names of what goes into a model, among those of its answers


@dataclass(frozen=True, slots=True)
class Collective:
    """A call that all ranks have to make; the last ones of a rank outlive its death."""

    number: int
    op: str
    shape: tuple[int, ...] = ()
    step: int = 0
    site: Site | None = None
    callers: tuple[Site, ...] = ()  # around the site, from inside to outside


@dataclass(frozen=True, slots=True)
class Position:
    """Where a rank stood when the ranks waited for each other."""

    rank: int
    ended: bool
    op: str | None
    site: Site | None = None
    # kind, step, file, line of its last events
    last: tuple[tuple[str, int, str, int], ...] = ()
    still: float = 0.0  # seconds in which nothing moved


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """One norm per parameter of this rank."""

    step: int
    after_backward: tuple[float, ...]
    at_step: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LocalGradients:
    """Gradients as this rank alone has them, or its parts of a sharded model's."""

    rows: tuple[GradientNorms, ...] = ()
    sites: tuple[Site, ...] = ()  # lines that change them between backward pass and step


@dataclass(frozen=True, slots=True)
class Write:
    """Parameters that are written outside of an optimizer's step."""

    sites: tuple[Site, ...]  # the line, and those that called it
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class TensorApart:
    """Norms on either rank, and the distance relative to them."""

    name: str
    ours: float
    theirs: float
    distance: float


@dataclass(frozen=True, slots=True)
class Apart:
    """Fingerprints of two ranks that differ."""

    rank: int
    other: int
    first: int  # step at which they did
    same: int  # the last step at which they were the same, -1 without one
    looks: int
    step: int  # of the latest look
    tensors: tuple[TensorApart, ...]
    num: int
    drifted: bool  # by more than rounding


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the ranks were compared by while they trained."""

    rank: int = 0
    world_size: int = 1
    every: int = 1
    compared: int = 0
    last: int = 0  # the latest step
    batches: tuple[int, int] = (0, 0)  # spans with the same batches, spans compared
    # parameters, gradients, buffers, answers, ...
    found: Mapping[str, Apart] = field(default_factory=dict)
    buffers_sent: int = 0  # collectives of the script that hold buffers
    bytes: int = 0
    asked: int = 0  # comparisons of answers to one batch, with the same weights
