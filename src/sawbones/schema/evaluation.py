"""What a script did with its model's outputs where it wanted no gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Met:
    """Everything that has come by at one place of an operator."""

    shapes: tuple[tuple[int, ...], ...] = ()
    dtype: str = ""
    num: int = 0  # 0: no values were looked at
    min: float = math.nan
    max: float = math.nan
    mean: float = math.nan


@dataclass(frozen=True, slots=True)
class PaddedPlaces:
    """How much of a comparison lies on padding."""

    value: int
    positions: int
    padded: int
    equal: int
    equal_padded: int
    rows: Mapping[int, int]  # by how much of them is padded


@dataclass(frozen=True, slots=True)
class BlankPlaces:
    """How much of a difference of real numbers lies on ends of rows that are blanked out."""

    positions: int
    padded: int
    equal_inside: int
    full_rows: int
    batches: int
    rows: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """One operator at one place, over all evaluations of the run."""

    id: int
    op: str
    site: Site | None
    roles: tuple[str, ...]  # output, target or other, one per tensor that went in
    args: tuple[int | float | bool | str, ...] = ()
    sources: tuple[int, ...] = ()
    given: tuple[Met, ...] = ()
    result: Met = field(default_factory=Met)
    steps: tuple[int, ...] = ()  # the latest of them
    num_steps: int = 0
    count: int = 0
    target_counts: Mapping[int, int] = field(default_factory=dict)
    # step, the number that was read off, how many values it is the mean of
    reads: tuple[tuple[int, float, int], ...] = ()
    # of each evaluation: its step, how many answers were right, of how many
    hits: tuple[tuple[int, int, int], ...] = ()
    read_calls: tuple[int, ...] = ()  # after which model call of the evaluation each was read off
    padding: PaddedPlaces | None = None
    blanks: BlankPlaces | None = None


@dataclass(frozen=True, slots=True)
class ActiveLayer:
    """An operator that was random, or took batch statistics, in an evaluation."""

    op: str
    kind: str
    site: Site | None
    training: bool
    step: int
    count: int
    used: bool  # something was done with the outputs
    line: Site | None = None  # that calls the model
    calls: int = 0
    trained: int = 0  # calls with a batch that a call with gradients was given next


@dataclass(frozen=True, slots=True)
class EvaluationPass:
    step: int
    calls: int = 0
    # "sign", "argmax of 10" -> class -> how often
    predictions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelInput:
    phase: str
    step: int
    path: str
    shape: tuple[int, ...]
    site: Site | None
    nonfinite: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    feature_mean: tuple[float, ...] = ()
    feature_std: tuple[float, ...] = ()
    within: float | None = None  # spread of one sample, median
    model: str = ""  # its class
    fed_back: bool = False  # made from the model's outputs of the call before


@dataclass(frozen=True, slots=True)
class BecomesAlike:
    """An operator whose results are the same for all samples although what went in was not."""

    op: str
    site: Site | None
    step: int
    after: str  # the operator before it


@dataclass(frozen=True, slots=True)
class Stretch:
    windows: int = 0
    first: int = -1
    last: int = -1


@dataclass(frozen=True, slots=True)
class Stream:
    """One long text, and the stretch of it that either phase reads."""

    size: int
    site: Site | None
    steps: tuple[int, ...]
    train: Stretch
    eval: Stretch


@dataclass(frozen=True, slots=True)
class ScoredWay:
    """Shares of right answers."""

    all: float
    batches: tuple[float, ...]
    pairs: float | None = None  # of all pairs of answers and labels


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation scored again, and what the usual mistakes make of it."""

    step: int
    rows: int
    calls: int
    sizes: tuple[int, int]
    classes: int
    class_0: float
    by_column: float = 0.0
    largest: ScoredWay | None = None
    over_zero: ScoredWay | None = None
    over_half: ScoredWay | None = None
    whole_part: ScoredWay | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    active: tuple[ActiveLayer, ...] = ()
    nodes: tuple[Node, ...] = ()
    passes: tuple[EvaluationPass, ...] = ()
    inputs: tuple[ModelInput, ...] = ()
    printed: tuple[tuple[int, str], ...] = ()  # step, line
    constant: tuple[BecomesAlike, ...] = ()
    scored: tuple[Scored, ...] = ()
    streams: tuple[Stream, ...] = ()
