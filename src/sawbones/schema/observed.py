"""The signals that a run records once. A field here is all that the store, the checks and the
contract have to know of one: the recorder keeps its value under the same name, and the reader makes
the type of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sawbones.schema.cpu import CpuTime
from sawbones.schema.evaluation import Evaluation
from sawbones.schema.fitted import Fitted
from sawbones.schema.held import HeldGroups, HeldTimes, Strangers, VocabularyPair
from sawbones.schema.labels import LabelProbe, Redraw
from sawbones.schema.loaded import KeptWeights, Restored
from sawbones.schema.loader import Drawn, Loader
from sawbones.schema.one_off import (
    Buffer,
    Bundle,
    CheckpointFile,
    DataCode,
    Decoding,
    FirstNonfinite,
    Framework,
    Graphs,
    HeldBack,
    Logged,
    Modes,
    NormCopy,
    OwnGradient,
    Scaler,
    Syncs,
    TwinRun,
)
from sawbones.schema.populations import Populations
from sawbones.schema.profile import Profile
from sawbones.schema.ranks import Agreement, Collective, LocalGradients, Position, Write
from sawbones.schema.samples import Samples
from sawbones.schema.shared_rows import SharedRows
from sawbones.schema.site import Site
from sawbones.schema.source import IndexWrites, MadeTensors, SourceCall, SourceLine, SourceNumber
from sawbones.schema.sources import SourceChange, Sources
from sawbones.schema.standing import Standing
from sawbones.schema.updates import Updates


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Empty or None: not seen, or not recorded."""

    # how the process went
    device: str = "cpu"
    compiled: bool = False
    compile_off: bool = False  # torch.compile was kept from compiling
    cpu_time: CpuTime = field(
        default_factory=CpuTime
    )  # all zero where the system does not count it
    operators_heard: bool = False
    off: tuple[str, ...] = ()  # hooks that an error of their own has switched off
    stopped: str = ""  # why watching ended before training did
    masked: Mapping[str, int] = field(default_factory=dict)  # secrets, by kind
    # Steps whose events are all there; after them only rare kinds are, and everything of every
    # 25th step.
    events_in_full: int = 500
    # number of an event, milliseconds of the recorder's own work around it
    own_ms: tuple[tuple[int, float], ...] | None = None
    bundles: tuple[Bundle, ...] = ()
    died: int = 0  # exit status of a process that was killed
    aborted: str = ""  # the stacks that an abort left behind
    held_back: tuple[HeldBack, ...] = ()
    framework: Framework | None = None
    logged: tuple[Logged, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()  # step, what the script printed with a number in it
    # the loop
    scalers: tuple[Scaler, ...] = ()
    loaders: tuple[Loader, ...] = ()
    drawn: tuple[Drawn, ...] | None = None
    restored: tuple[Restored, ...] | None = None
    states_taken: tuple[Site, ...] = ()  # lines that ask a model for its weights
    kept_weights: tuple[KeptWeights, ...] = ()  # of the best score so far
    files: tuple[CheckpointFile, ...] = ()
    syncs: Syncs | None = None
    standing: Standing | None = None  # where the training thread stood, look by look
    graphs: Graphs | None = None
    profile: Profile | None = None
    twin_run: TwinRun | None = None
    # random streams of these libraries that the script drew from
    streams_used: Mapping[str, bool] = field(default_factory=dict)
    # the source, as it is written
    source_calls: tuple[SourceCall, ...] = ()
    source_numbers: tuple[SourceNumber, ...] = ()
    source_lines: tuple[SourceLine, ...] = ()
    # the model
    decoding: Decoding | None = None
    own_gradients: tuple[OwnGradient, ...] = ()
    loose_gradients: tuple[int, ...] | None = None  # tensors with gradients in no optimizer
    buffers: tuple[Buffer, ...] = ()
    norm_copies: tuple[NormCopy, ...] | None = None
    index_writes: tuple[IndexWrites, ...] = ()  # lines that add to places of index tensors
    updates: tuple[Updates, ...] = ()
    nonfinite: FirstNonfinite | None = None
    evaluation: Evaluation = field(default_factory=Evaluation)
    populations: Populations = field(default_factory=Populations)
    # the data
    sources: Sources = field(default_factory=Sources)
    source_change: SourceChange = field(default_factory=SourceChange)  # trials
    made_tensors: tuple[MadeTensors, ...] = ()
    samples: Samples | None = None
    label_probe: LabelProbe | None = None
    redraw: Redraw | None = None
    shared_rows: tuple[SharedRows, ...] = ()  # lists of arrays, by where they are put together
    vocabularies: tuple[VocabularyPair, ...] = ()
    held_groups: tuple[HeldGroups, ...] = ()
    held_times: tuple[HeldTimes, ...] = ()
    strangers: tuple[Strangers, ...] = ()  # trials
    data_code: DataCode = field(default_factory=DataCode)
    metric_libraries: tuple[str, ...] = ()
    fitted: Fitted = field(default_factory=Fitted)
    # the ranks
    agreement: Agreement | None = None
    hang: tuple[Position, ...] = ()
    last_collectives: tuple[Collective, ...] = ()
    epoch_loop: Site | None = None
    sharded: int = 0  # parameters of which each rank holds a part
    parts_of_all: bool = False  # the parts make up the whole model
    shards: LocalGradients | None = None
    local_gradients: LocalGradients | None = None
    writes: tuple[Write, ...] = ()
    # what a remedy left in the run that it changed
    remedies: Mapping[str, float] = field(default_factory=dict)  # how often each took hold
    modes: Modes = field(default_factory=Modes)
    gradient_until_step: tuple[
        tuple[float, float], ...
    ] = ()  # after the backward pass, at the step
    # micro-steps, gradient norm, that of one large batch
    repeated_microbatch: tuple[tuple[float, float, float], ...] = ()
    gradient_check: tuple[OwnGradient, ...] = ()
