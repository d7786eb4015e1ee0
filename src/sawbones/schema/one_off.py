"""Small signals of a run that are taken once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Something of the world outside that the script wanted and was not given."""

    what: str  # of isolation.held_back.ALLOWED_BY
    target: str
    site: str | None = None  # file:line


@dataclass(frozen=True, slots=True)
class Bundle:
    """A step that was captured."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Modes:
    """Model calls that a remedy found in the other mode than they should be in."""

    calls: int = 0
    changed: int = 0
    distance: float = 0.0  # between the answers in both modes, relative


@dataclass(frozen=True, slots=True)
class SeedDiffers:
    """A seeding call that was given another value in the second run."""

    library: str
    first: int | float | str | None = None
    second: int | float | str | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs first between two runs from one seed."""

    what: str  # batch_order, batch_values, loss, ending
    step: int = 0
    index: int = 0  # of the batch
    first: float | str | None = None
    second: float | str | None = None
    relative: float | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class TwinRun:
    """A second run from the same seed; `differs` is None when both agree as far as both went."""

    steps: int
    seeded: tuple[str, ...] = ()
    seed_differs: SeedDiffers | None = None
    differs: Difference | None = None


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoding token by token with a cache, against the full pass over the same tokens."""

    distances: tuple[float, ...]
    prompt: int
    step: int
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class OwnGradient:
    """A class of the user's, its slopes by autograd and by differences of its forward pass."""

    cls: str
    file: str
    line: int
    kind: str = ""
    code: str = ""
    failed: str = ""  # why nothing could be compared
    error: float | None = None  # relative, None where nothing was compared
    autograd: float = 0.0
    differences: float = 0.0
    compared: int = 0
    unsure: float = 0.0
    kink: bool = False
    passes_through: bool = False
    flat: bool = False


@dataclass(frozen=True, slots=True)
class SyncLine:
    op: str
    site: Site
    count: int
    steps: int


@dataclass(frozen=True, slots=True)
class Syncs:
    """Lines that make the host wait for the device."""

    steps: int
    lines: tuple[SyncLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Graphs:
    """Autograd graphs of past steps that are still alive."""

    series: tuple[tuple[int, int, int], ...] = ()  # step, kept, made
    sites: tuple[tuple[Site, int], ...] = ()  # with votes
    holders: tuple[Site, ...] = ()
    kept: int = 0
    made: int = 0


@dataclass(frozen=True, slots=True)
class Scaler:
    """A GradScaler as it was built."""

    site: Site | None = None
    init_scale: float | None = None
    growth_factor: float | None = None
    backoff_factor: float | None = None
    growth_interval: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file that torch.save wrote, torch.load read, or could not read ("failed load")."""

    action: str
    path: str
    size: int
    step: int
    site: Site | None = None
    error: str = ""
    cut: bool = False
    digest: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor that was put among a module's buffers."""

    shape: tuple[int, ...]
    dtype: str
    site: Site


@dataclass(frozen=True, slots=True)
class NormCopy:
    """A copy of a trained model as it was last evaluated, and the statistics of its batch norms."""

    cls: str
    step: int
    layers: int
    unmoved: int  # layers whose means are all 0 and variances all 1
    moved_in_trained: int  # layers of the model that is trained whose statistics are not
    written: Site | None = None  # where the parameters of the copy were written
    site: Site | None = None  # of the evaluation


@dataclass(frozen=True, slots=True)
class DataCode:
    """(file, first line, last line) of the user's functions that read, make and seed samples."""

    reads: tuple[str, int, int] | None = None
    makes: tuple[str, int, int] | None = None
    seeds: tuple[str, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Framework:
    """The trainer whose callback was given to it."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Logged:
    """Numbers under a trainer's own names, at its own step and epoch."""

    optimizer_step: int
    step: int | None
    epoch: float | None
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Values that went into an operator; None where they are not known."""

    shape: tuple[int, ...] = ()
    dtype: str = ""
    min: float | None = None
    max: float | None = None
    nonfinite: int = 0
    zeros: int = 0
    whole: bool = False
    is_parameter: bool = False


@dataclass(frozen=True, slots=True)
class FirstNonfinite:
    """The first operator of a step whose result is not finite."""

    op: str
    step: int
    site: Site | None = None
    shape: tuple[int, ...] = ()
    nonfinite: int = 0
    inputs: tuple[ValueRange, ...] = ()
