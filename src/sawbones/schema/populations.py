"""Every evaluation after the last training step, with its rows and answers, and what becomes of
comparing them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Population:
    """One evaluation. Row by row only where it is not too large."""

    rows: int
    known: float = 0.0  # share of the rows that were trained on
    kind: str = ""  # classes, quantity; empty where it is not known what was asked for
    score: float = math.nan  # share of right answers, or the mean distance
    new_score: float | None = None  # over the rows that were not trained on
    number: int = 0
    width: int = 1  # numbers of one answer
    errors: tuple[float, ...] = ()
    given: tuple[float, ...] = ()  # the class or number that was answered
    hashes: tuple[int, ...] = ()
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class MovedColumn:
    column: int
    apart: float  # Kolmogorov-Smirnov distance
    shift: float  # in spreads of the reference
    spread: float  # as a factor of that of the reference


@dataclass(frozen=True, slots=True)
class RowKind:
    """All rows with this value in this column, of the inputs or of what the script holds."""

    column: int | str
    value: float | str


@dataclass(frozen=True, slots=True)
class PrecisionFall:
    """Answers of one class that are right less often."""

    label: float
    before: float
    after: float
    lower: float  # end of the interval


@dataclass(frozen=True, slots=True)
class MovedTargets:
    """The share of a class, or the mean of a quantity."""

    before: float
    after: float
    apart: float
    label: float | None = None


@dataclass(frozen=True, slots=True)
class WorsePair:
    """A population on which a model is worse than on another one, and what moved."""

    reference: int
    later: int
    is_part: bool
    kind: str
    rows: tuple[int, int]
    scores: tuple[float, float]
    lower: float  # end of the interval of the rise of the error
    ratio: float
    tried: int  # comparisons that the interval is corrected for
    width: int  # input columns
    precision: PrecisionFall | None = None
    kinds: tuple[RowKind, ...] = ()
    columns: tuple[MovedColumn, ...] = ()  # that moved, the furthest first
    num_columns: int = 0  # of them
    labels: MovedTargets | None = None
    within: float = 0.0  # the furthest that a column moved among rows of one class
    together: float = 0.0  # excess of rows whose nearest neighbour is of their own population
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Likeness:
    """A module beside the model that was trained."""

    cls: str
    shared: float  # share of the trained model's tensors, or layers, that it has by name and shape
    distance: float | None  # of these, relative to their size; None where they cannot be compared
    cosine: float | None  # of their matrices: 0 between two random starts, 1 for a copy
    buffers: float | None  # the same of buffers: running means and variances
    kind: str  # quantised, scripted, exported, copy


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    column: int
    factor: float  # of its spread
    shift: float  # in spreads


@dataclass(frozen=True, slots=True)
class ServedPair:
    """The same rows answered twice: by a copy, or prepared in another way."""

    trained: int
    served: int
    rows: int
    kind: str
    apart: float
    scores: tuple[float, float]
    lower: float | None  # by how much the served answers are worse, at the least
    prepared: tuple[PreparedColumn, ...]  # the first
    num_prepared: int
    width: int
    is_training: bool  # the served one alone
    copy: Likeness | None = None  # None: the same model
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class CarryingColumn:
    """The one input column that carries the answer."""

    number: int  # of the evaluation
    column: int
    width: int
    rows: int
    score: float
    scrambled: float  # the score with this column scrambled
    alone: float  # and with all others scrambled
    constant: float  # of the commonest class
    is_id: bool
    filled: float = 0.0  # how surely one value says the class
    at_once: float = 0.0  # of what other values say, how much the nearest tenth of them says
    between: float = 1.0  # rows between the classes, over those of an even spread
    exceptions: int | None = None  # to the best single cut
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """Evaluated rows or texts that were made from trained ones, with the score without them."""

    rows: int  # looked at
    derived: int
    kind: str = ""
    by_chance: int = 0  # trained rows that look derived as well
    score: float | None = None
    new_score: float | None = None
    constant: float | None = None  # share of the commonest class among the other rows


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Distinct evaluated rows that the same model was trained on."""

    number: int
    models: int  # that were trained
    rows: int
    copies: int
    mixed: float  # share of rows in calls with known and new ones
    met: float  # share of the trained rows
    is_telling: bool  # equal rows are copies for certain
    chance: float  # share that equals a trained row by chance, at most
    # share of the copies with a trained row near by that is another one; None: not known
    near: float | None = None


@dataclass(frozen=True, slots=True)
class RecodedLabels:
    """Answers that are right under another name of each class, beside an evaluation of the same
    model that is right as it is.
    """

    number: int  # of the evaluation
    rows: int
    score: float
    renamed: float  # the score under the other names, on the rows that they were not read off
    judged: int  # of these rows
    reference: float  # the score of the other evaluation
    names: tuple[tuple[int, int], ...]  # answer -> label, of those that differ
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class RenumberedColumn:
    """A column of category codes."""

    input: int  # of the model, in the order in which it is given them
    column: int
    codes: int  # in the evaluation
    moved: int  # of these codes, that answer for another one
    apart: float  # total variation from the codes of training, as they are
    left: float  # and renumbered


@dataclass(frozen=True, slots=True)
class Renumbering:
    """An evaluation whose rows were answered again with other category codes. The codes were read
    off half of the rows, the losses are those of the other half.
    """

    number: int  # of the evaluation
    rows: int
    loss: float  # log-loss, or mean distance
    renumbered: float
    constant: float  # that of the best constant answer
    errors: float  # standard errors by which the loss fell
    columns: tuple[RenumberedColumn, ...]
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class SwappedChannels:
    served: int
    rows: int
    order: tuple[int, ...]  # that puts the channels back
    apart: float
    left: float  # of the distance, once they are put back
    noise: float
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class PutBack:
    """One step of a preparation taken back, and the model is good again."""

    reference: int
    served: int
    rows: int
    change: str
    order: tuple[int, ...]  # of channels, where it is that
    scores: tuple[float, float, float]  # of the other population, before, after
    num_tried: int
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoredAgain:
    """Rows that were scored each time that a model was evaluated, as shares of right answers."""

    rows: int
    steps: tuple[int, ...]  # of optimizers, that were over each time
    scores: tuple[float, ...]
    losses: tuple[float, ...]  # the mean log-loss each time; empty where it is not known
    known: float  # share of the rows that were trained on
    honest: float | None  # the score of one half where the other half chooses the time
    apart: tuple[int, ...] = ()  # places of others that share no row with these
    sites: tuple[Site, ...] = ()  # lines of the script, innermost first


@dataclass(frozen=True, slots=True)
class Populations:
    passes: tuple[Population, ...] = ()
    why: str = ""  # not all are there
    column: CarryingColumn | None = None
    between: DerivedRows | None = None
    copied: CopiedRows | None = None
    near_texts: DerivedRows | None = None
    channels: SwappedChannels | None = None
    worse: tuple[WorsePair, ...] = ()
    put_back: PutBack | None = None
    served: tuple[ServedPair, ...] = ()
    recoded: RecodedLabels | None = None
    renumbered: Renumbering | None = None
    again: tuple[ScoredAgain, ...] = ()
