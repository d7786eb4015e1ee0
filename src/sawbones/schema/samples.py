"""What the model was given and asked for, counted over a number of batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IdCounts:
    """Rows by one id of theirs; the commonest ids one by one, the others only in the sum. -1: the
    row is empty.
    """

    top: Mapping[int, int] = field(default_factory=dict)
    all: int = 0

    @property
    def commonest(self) -> float:
        """The share of the commonest id."""
        return max(self.top.values(), default=0) / max(self.all, 1)


@dataclass(frozen=True, slots=True)
class TokenTargets:
    """Which targets of token rows count; rows at the limit are the longest ones."""

    ignored: int | None = None
    rows_at_limit: int = 0
    empty_at_limit: int = 0  # without a target that counts
    rows_below: int = 0
    empty_below: int = 0
    last_at_limit: IdCounts = field(default_factory=IdCounts)  # by their last target that counts
    last_below: IdCounts = field(default_factory=IdCounts)
    copies: float = 0.0  # share of targets that are the next token of the input
    copies_here: float = 0.0  # the same token
    holes: float = 0.0  # share of places inside of texts that do not count
    tight_share: float | None = None  # of batches with a target that counts in the last column
    counted: Mapping[int, int] = field(default_factory=dict)  # the commonest ids that count

    @property
    def copied(self) -> float:
        """Share of the targets that are tokens of the input, at the same place or at the next."""
        return max(self.copies, self.copies_here)


@dataclass(frozen=True, slots=True)
class SharedId:
    """An id that the loss leaves out, in rows that nothing seems to pad."""

    id: int
    interior_share: float
    long: float  # share of rows that end in several of it
    kinds: int  # different numbers of it at row ends


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """Rows of one kind, towards the end of training; shares."""

    rows: int
    right: float
    commonest: float  # label


@dataclass(frozen=True, slots=True)
class TokenRows:
    batches: int = 0
    time_first: bool = False
    pad_id: int | None = None
    pad_side: str | None = None  # right, left
    lengths: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    tight_share: float = 0.0  # of batches whose longest row fills them
    empty: tuple[tuple[int, int], ...] = ()  # training call, row
    interior_share: float = 0.0  # of places inside of texts that hold the padding id
    starts: IdCounts = field(default_factory=IdCounts)
    targets: TokenTargets | None = None
    shared: SharedId | None = None
    at_limit: RowAnswers | None = None  # answers to the longest rows, and to the others
    below: RowAnswers | None = None


@dataclass(frozen=True, slots=True)
class TokenShift:
    """Ids of validation against those of training: numbers of tokens, then distances."""

    train: int
    eval: int
    distance: float
    by_rank: float  # when both are sorted by frequency
    # id, share in training, share in validation, of the one that validation has most more often
    newcomer: tuple[int, float, float]


@dataclass(frozen=True, slots=True)
class NearCopies:
    evaluated: int
    trained: int
    near: float  # share of evaluated samples with a near copy among the trained ones
    middle: float  # nearest over tenth neighbour, median
    # share of evaluated samples with a near one, or a few, and all others five times as far away
    alone: float = 1.0


@dataclass(frozen=True, slots=True)
class TurnedCopies:
    """Pictures that were trained on, turned by right angles or mirrored."""

    evaluated: int  # and not trained on as they are
    trained: int
    turned: int  # of the evaluated
    as_they_are: int  # trained on as they are, in the calls that met turned ones


@dataclass(frozen=True, slots=True)
class TokenCopies:
    evaluated: int
    shared: int
    copies: int  # of the shared: so long that chance does not make them twice
    beside: float  # share of these with a neighbour that differs in a few tokens


@dataclass(frozen=True, slots=True)
class LaterWindows:
    """Windows of one series."""

    evaluated: int
    trained: int
    later: float  # share of evaluated ones that a trained one overlaps and outlasts
    steps: int
    ahead: int  # of the last step lies what is asked for; 0 where that is something else
    between: int = 0  # evaluated ones that trained ones overlap on both sides
    by_chance: float = 0.0  # share that windows of no series would have of that, at most
    apart: float = 0.0  # share of evaluated ones that come along with none such


@dataclass(frozen=True, slots=True)
class Altered:
    """What reaches the model against what the loader gave."""

    calls: int
    correlation: float


@dataclass(frozen=True, slots=True)
class ClassAnswers:
    wanted: int
    right: int
    given: int


@dataclass(frozen=True, slots=True)
class Predictions:
    """The last training calls."""

    calls: int = 0
    classes: Mapping[int, ClassAnswers] = field(default_factory=dict)
    maps: bool = False  # labels of places, not of samples, are among them


@dataclass(frozen=True, slots=True)
class Samples:
    predictions: Predictions = field(default_factory=Predictions)
    altered: Altered | None = None
    copies: NearCopies | None = None
    turned: TurnedCopies | None = None
    token_copies: TokenCopies | None = None
    later_windows: LaterWindows | None = None
    void: tuple[int, ...] = ()  # training calls all of whose targets are ignored
    levels: tuple[tuple[float, float], ...] = ()  # least and largest target, call by call
    labels: tuple[Mapping[int, int], ...] = ()  # call by call
    token_shift: TokenShift | None = None
    rows: TokenRows | None = None
