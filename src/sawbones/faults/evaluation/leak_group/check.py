"""One user, patient or document on both sides of a split

## What it sees
Tables, columns and lists of row numbers that the script holds when training begins. Fires when a
column of ids repeats (16 groups or more, 3 rows each and more), at least half of the held-out rows
belong to a group that is trained on too, and the target is the group's own: the same class in all
its rows, with several groups of every class. Also when the script holds a column of groups that the
model is not given, the nearest trained row of an evaluated one is mostly of its own group, and a
trial shows what the score owes to that: some groups' training rows are overwritten with others of
the same label, the script runs again, and the score over the evaluated rows of these groups falls
by at least 5 points, beyond what fewer training rows cost. `sawbones audit leaks --group COLUMN`
looks at data sets, whatever the target.

## Why it matters
Rows of one group are alike beyond what the features say. A model that has met the group recognises
it, and the score promises that for strangers.

## Looks like
Test scores far above those of the first new patients, customers or authors; the gap closes when
whole groups are held out.

## Example
    train, test = train_test_split(rows, test_size=0.2)

## Use instead
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.2)
    train_index, test_index = next(splitter.split(rows, groups=rows["patient"]))

## Confirm it
`sawbones diagnose` runs the script again without the training rows of some evaluated groups, and
shows both scores. Where all rows of a group have the same answer, no experiment is needed.

## False alarms
Recommenders and forecasts for known shops have every user and shop on both sides by design: what
they predict differs from row to row of one group, and where the model is given the id nothing is
tried. Groups that do not matter leave the score as it is when they are kept apart. A number that
decides the class (an age, a score) is a feature: the class follows its order, and that of ids does
not. Ids that the model looks up in a table are meant to be known. A country or a product class has
few values, and where a class is only another name for it there are no several groups of every
class.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L3.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, context, counted, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.evidence.strangers import fall, fallen, tried_apart
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.trace.feeding import loader_sites, training_batches
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import dealing_lines, marked_lines

NEEDS = ("batches", "validation")
USES = ("held_groups", "strangers", "source_lines", "source_calls", "loaders")
EXPLAINS = ()
EXPERIMENT = None
_FIX = Fix(
    "Hold out whole groups: GroupShuffleSplit or GroupKFold, or draw the ids first and then take "
    "all their rows."
)
SPARE_ROWS = 8  # of an embedding: padding, unknown ids


def check(run: Run) -> Iterator[Finding]:
    if not run.held_groups and not tried_apart(run, "group"):
        whys = [t.why for t in run.strangers if t.why]
        tail = f" ({whys[0]})" if whys else ""
        raise NothingToJudge(f"no column of ids on both sides of a split was found{tail}")
    told = fallen(run, "group")
    if told is not None:
        yield finding(
            f"Rows of one {_called(told.column)} are on both sides of the split",
            _where(run),
            (fall(told),),
            _FIX,
        )
        return
    yield from _one_answer(run)


def _one_answer(run: Run) -> Iterator[Finding]:
    """Groups all of whose rows have the same target."""
    trained = {f for batch in training_batches(run) for f in batch.fingerprints}
    for held in run.held_groups:
        train_rows, held_rows = held.rows
        if (
            not limits.SHARED_GROUPS.reached_by(held.share)
            or len(trained) > train_rows
            or not limits.ROWS_SEEN.reached_by(len(trained) / train_rows)
            or not held.classes
            or not _is_target(run, held.classes)
            or _is_looked_up(run, held.groups)
        ):
            continue
        column = _called(held.column)
        share = (
            f"{held.share:.0%} of the {held_rows} held-out rows have a {column} that is among "
            f"the {train_rows} rows trained on ({held.groups} groups in all)"
        )
        answer = (
            f"all rows of one {column} have the same target: to know the group is to know the "
            "answer"
        )
        hits = held.share * held_rows
        yield finding(
            f"Rows of one {column} are on both sides of the split",
            _where(run, held.names),
            (
                counted(share, hits, held_rows, limits.SHARED_GROUPS, signal="held_groups"),
                context(answer, signal="held_groups"),
            ),
            _FIX,
        )
        return


def _called(column: str) -> str:
    """Columns of a data set of tensors have numbers, no names."""
    return f"value of column {column}" if column.isdecimal() else column


def _is_target(run: Run, classes: int) -> bool:
    """What the loss is given are classes, as many as the column has that is one all over each
    group.
    """
    for deep in run.deep:
        for call in deep.losses:
            target = call.target
            if target is None or target.min is None or target.max is None or target.min < 0:
                continue
            if target.dtype.startswith(("int", "uint")):
                fits = int(target.max) in range(classes)
            else:
                fits = classes == 2 and target.max <= 1
            if fits:
                return True
    return False


def _is_looked_up(run: Run, groups: int) -> bool:
    """The model has a row of its own for each, or is asked to tell which it is: a fine class beside
    a coarse one.
    """
    asked = any(
        c.target is not None and c.target.max == groups - 1
        for deep in run.deep
        for c in deep.losses
    )
    tables = range(groups, groups + SPARE_ROWS + 1)
    return asked or any(t.num_embeddings in tables for deep in run.deep for t in deep.tokens)


def _where(run: Run, names: tuple[str, ...] = ()) -> tuple[Site, ...]:
    lines = marked_lines(run, "split")
    named = [s for s in lines if any(name in s.code.partition("=")[0] for name in names)]
    return locate(*named[:1], *dealing_lines(run), *loader_sites(run))[:4]
