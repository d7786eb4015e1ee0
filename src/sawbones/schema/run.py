"""A run: everything observed of one execution. Plain data, readable without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawbones.schema.crash import Crash
from sawbones.schema.deep import DeepStep
from sawbones.schema.evaluated import Evaluated
from sawbones.schema.event import Event
from sawbones.schema.loaded import Restored
from sawbones.schema.observed import Observed
from sawbones.schema.site import Site

if TYPE_CHECKING:  # scripts set its number of threads before they import it: not at the top
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

# A statistic is NaN or Inf when the tensor was; these two mark that there was nothing to measure.
NOT_MEASURED = -1.0
NO_GRADIENT = -2.0

STEP_COLUMNS = (
    "step",
    "optimizer",
    "time",
    "loss",
    "grad_norm",
    "param_norm",
    "update_norm",
    "lr",
    "data_wait_ms",
    "step_ms",
    "memory_mb",
    "scale",
    "skipped",
    "microsteps",
    "deep",
    "watch_ms",
)

TENSOR_STATISTICS = (
    "grad_l2",
    "grad_max",
    "grad_zero_share",
    "grad_nonfinite",
    "grad_subnormal_share",
    "param_l2",
    "update_l2",
)


def _no_steps() -> npt.NDArray[np.int64]:
    import numpy as np

    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Tensor:
    """One parameter: its name in the model and where it is held."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    requires_grad: bool
    owner: str  # class of the module that holds it, "" when no module does
    optimizer: int  # index of the optimizer that holds it, -1 when none does
    group: int = -1
    weight_decay: float = 0.0
    in_model: bool = True  # False: an optimizer holds it, but no module that ran does

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Optimizer:
    index: int
    cls: str
    defaults: Mapping[str, Any]
    groups: tuple[Mapping[str, Any], ...]  # hyperparameters of each group plus num_params
    site: Site | None = None
    builtin: bool = True  # False: the class is not one of torch.optim's own


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a top-level model: path, class and the settings a check may need."""

    path: str
    cls: str
    settings: Mapping[
        str, Any
    ]  # eps, p, num_features, padding_idx, num_embeddings, bias, batch_first, ...
    num_params: int
    num_trainable: int
    site: Site | None = None  # the class definition's forward, when it is the user's own
    built: Site | None = None  # the user's line that made it


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run ended. kind: finished, exception, interrupted, terminated, exit, budget, hang,
    killed.
    """

    kind: str
    exit_code: int | None = None
    exception: str | None = None  # class name
    message: str | None = None  # of the exception; of a budget, which one: steps or seconds
    traceback: tuple[Site, ...] = ()  # outermost first, the user's frames and the library's
    site: Site | None = None  # innermost frame in the user's code
    batch: Mapping[str, Any] | None = None  # what was being processed: shapes, ranges, fingerprints
    modules: tuple[
        Mapping[str, Any], ...
    ] = ()  # module chain with shapes up to the failing operator
    failing: Mapping[str, Any] | None = None  # operator, input shapes, dtypes and value ranges
    crash: Crash | None = None  # what was bound when an exception ended the run


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch as it came out of a loader, or, without one, as it went into the model."""

    step: int
    microstep: int
    phase: str
    source: str  # "loader:0", "model"
    wait_ms: float
    tensors: tuple[
        Mapping[str, Any], ...
    ]  # path, shape, dtype, and on sampled steps min, max, mean, std, nonfinite, ...
    fingerprints: tuple[int, ...] = ()  # one 64-bit value per sample over the whole sample
    epoch: int = 0  # how often this loader had been started before
    index: int = -1  # which batch of the run it was; long runs keep only some of them


@dataclass(frozen=True)
class Run(Observed):
    """Everything observed of one execution, read back from a run folder. `steps` holds one array
    per series ("loss", "grad_norm", "lr"); `ranks` the other ranks of a distributed run.
    """

    script: str
    argv: tuple[str, ...]
    folder: str
    environment: Mapping[str, Any]
    ending: Ending
    rank: int = 0
    world_size: int = 1
    seconds: float = 0.0
    events: tuple[Event, ...] = ()
    steps: Mapping[str, FloatArray] = field(
        default_factory=dict
    )  # STEP_COLUMNS -> one value per optimizer step
    tensors: tuple[Tensor, ...] = ()
    # statistic -> (recorded steps, tensors); NOT_MEASURED and NO_GRADIENT as above; row i belongs
    # to tensor_steps[i]
    tensor_steps: npt.NDArray[np.int64] = field(default_factory=_no_steps)
    statistics: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    optimizers: tuple[Optimizer, ...] = ()
    modules: tuple[Module, ...] = ()
    batches: tuple[Batch, ...] = ()
    deep: tuple[DeepStep, ...] = ()
    evaluated: tuple[Evaluated, ...] = ()  # of classifiers, in their order
    signals: Mapping[str, str] = field(
        default_factory=dict
    )  # signal -> "" when recorded, else why not
    ranks: tuple[Run, ...] = ()  # the other ranks of the same run, rank 0 holds them

    def __repr__(self) -> str:
        """Short: the tables hold a hundred thousand numbers."""
        steps = f"{self.num_steps} step{'s' * (self.num_steps != 1)}"
        return f"<Run {self.script}: {steps}, {self.ending.kind}, {self.folder}>"

    @property
    def num_steps(self) -> int:
        return len(self.steps.get("step", ()))

    @property
    def loaded_weights(self) -> list[Restored]:
        """Each time weights were put into a model and torch said nothing."""
        return [row for row in self.restored or () if row.given is not None]

    def of_kind(self, *kinds: str) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind in kinds)

    @property
    def losses(self) -> FloatArray:
        import numpy as np

        return self.steps.get("loss", np.zeros(0))
