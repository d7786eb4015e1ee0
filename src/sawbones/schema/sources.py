"""Where the rows come from that a model is given: the line at which they enter the script, which of
them are trained on and which are only evaluated, and what may be changed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sawbones.schema.samples import LaterWindows
from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Place:
    """A line that has made rows, and the one after it, at which they may be changed."""

    file: str
    function: str
    line: int
    at: int
    names: tuple[str, ...]  # of the variables that hold the rows
    labels: tuple[tuple[str, int], ...] = ()  # variable and column
    together: bool = False  # rows and labels are there at once


@dataclass(frozen=True, slots=True)
class RowChange:
    """What to change where the script comes by, for a trial."""

    place: Place
    count: int  # rows of what is changed
    rows: tuple[int, ...]
    what: str  # features, labels, neighbours (their labels), copies, scrambled, nothing
    only_reals: bool = False
    taken: tuple[int, ...] = ()  # of copies: the rows that they are made from
    columns: tuple[tuple[str, int], ...] = ()  # of what is scrambled: variable and column
    # phase -> call and place in its batch of the rows whose values are kept
    kept: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptRow:
    """All that the model is given for one row, tensor by tensor."""

    phase: str
    call: int
    place: int
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class FollowedCall:
    """A call of the model: a hash of each row and of each column that it was given."""

    phase: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    is_real: bool = True
    targets: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class HeldValue:
    """What a variable holds after a line."""

    site: Site
    name: str
    kind: str  # rows, value, evaluated: none but rows that are evaluated
    digest: str
    kept: str = ""  # the digest of the rows that a trial leaves as they are
    caller: Site | None = None


@dataclass(frozen=True, slots=True)
class StrangerRows:
    """Training rows to overwrite so that some evaluated ones have no relatives among them."""

    column: str
    kind: str  # group, time
    groups: int
    strangers: tuple[int, ...]  # evaluated rows
    clusters: tuple[int, ...]  # and the group of each
    overwritten: tuple[int, ...]
    taken: tuple[int, ...]  # the rows that they become copies of
    control: tuple[int, ...]  # as many that have nothing to do with them
    control_taken: tuple[int, ...]
    one_answer: bool = False  # all rows of a group have the same


@dataclass(frozen=True, slots=True)
class FilledColumns:
    """Columns that are filled in for one class alone."""

    columns: tuple[tuple[str, int], ...]  # variable and column
    names: tuple[str, ...]
    filled: int  # rows
    rows: int


@dataclass(frozen=True, slots=True)
class CopyPaths:
    """Rows that could be copies of training rows, for the question whether both are prepared
    alike.
    """

    rows: tuple[int, ...]
    taken: tuple[int, ...]
    # call and place in its batch where the model meets them first; the second half of each are to
    # be the same as the first
    train: tuple[tuple[int, int], ...]
    eval: tuple[tuple[int, int], ...]
    made: Site | None = None  # the line that made what is evaluated


@dataclass(frozen=True, slots=True)
class Future:
    """All rows of a series from one on, before which some evaluated ones stand."""

    place: Place
    rows: tuple[int, ...]
    trace: tuple[HeldValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Windows:
    """Rows of the model that are stretches of a series, and all rows of the series from one on."""

    place: Place
    count: int  # rows of the series
    rows: tuple[int, ...]
    early: tuple[int, ...]  # hashes of training rows; none where one reaches into these rows
    row_of: Mapping[int, int]  # hash of an evaluated row -> where it ends in the series
    ahead: int  # rows from there to its answer; 0 where that is not known to be later
    trace: tuple[HeldValue, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part that was split off, and is trained on all the same."""

    trained: int
    again: int  # evaluated rows that were trained on before
    held: int  # rows that the script holds as the other part
    site: Site


@dataclass(frozen=True, slots=True)
class Sources:
    why: str = ""  # nothing can be changed
    place: Place | None = None  # where all rows and their labels are there
    table: Place | None = None  # the table that is made of them later, with both
    count: int = 0
    trained: int = 0
    evaluated: int = 0  # and not trained on
    rows: tuple[int, ...] = ()  # to change: the later half of those
    early: tuple[int, ...] = ()  # hashes of training rows before them
    by_hand: bool = False  # the loss is written out: targets are seen operator by operator
    calls: tuple[FollowedCall, ...] = ()
    trace: tuple[HeldValue, ...] = ()
    # for further trials
    future: Future | None = None
    windows: Windows | None = None
    paths: CopyPaths | None = None
    strangers: tuple[StrangerRows, ...] = ()
    filled: FilledColumns | None = None
    row_of: Mapping[int, int] = field(default_factory=dict)  # hash of an evaluated row -> number
    answer_of: Mapping[int, float] = field(default_factory=dict)  # the same -> what is wanted
    answers_met: tuple[int, int] | None = None  # evaluated rows, of those looked at
    left_out: LeftOut | None = None
    dealt: LaterWindows | None = None  # windows, as they were before the model's rows were made
    is_prepared_alike: bool = False  # trained and evaluated rows, by where they stand
    # of a run with a change
    changed: tuple[str, ...] = ()  # variables
    kept: tuple[KeptRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of the other rows when some were changed where they enter."""

    outcome: str = ""  # moved, kept, refused; empty where it was not tried
    why: str = ""  # it was refused
    moved: int = 0  # rows
    compared: int = 0
    changed: int = 0
    columns: tuple[int, ...] = ()  # that moved with labels
    width: int = 0
    reach: int = 0  # rows before the change
    is_making: bool = False  # only when changed before the table is there: data may be made up
    entered: Site | None = None
    # the first value that moved, the line that made it, and the one that called that
    name: str = ""
    site: Site | None = None
    caller: Site | None = None


@dataclass(frozen=True, slots=True)
class PreparedTwice:
    """What the model is given for copies of training rows in evaluation."""

    outcome: str = ""  # as above; open: it could have decided, and was not run to its end
    why: str = ""
    moved: int = 0
    compared: int = 0
    num_columns: int = 0  # that differ
    width: int = 0
    column: int = 0  # one of them, with its value on both sides
    trained: float = 0.0
    evaluated: float = 0.0
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class WithoutFilled:
    """The score without columns that are filled in for one class alone."""

    names: tuple[str, ...]
    filled: int  # rows
    rows: int
    why: str = ""  # there is none
    metric: str = ""  # classes, quantity
    claimed: float = 0.0
    honest: float = 0.0


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Trials that change rows where they enter the script."""

    features: Moved = Moved()
    labels: Moved = Moved()
    future: Moved = Moved()
    paths: PreparedTwice = PreparedTwice()
    answers_met: tuple[int, int] | None = None
    filled: WithoutFilled | None = None
