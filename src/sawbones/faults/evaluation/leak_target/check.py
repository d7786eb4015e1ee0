"""An input that is made from the label

## What it sees
The script is run again from the same seed, with the labels of rows that are only evaluated
exchanged among each other at the line where rows and labels enter it. Every input of the model, in
training and in the first evaluation, must be the same bit for bit. Fires when some columns of the
inputs changed and others did not, so that the split is known to have stayed where it was. Where
the split follows the labels (a stratified one), only rows exchange theirs that stand next to one
another in the lists of their classes: the training part stays as it was then, and only what is
trained on counts. Where rows and labels do not enter together, only training rows count, which the
labels of others have moved. Also when one column carries the answer: scrambled among the evaluated rows it costs at least
80 % of what the score is above the best constant answer, and with all other columns scrambled at
least 90 % is left. Likely when one value of it is that of all rows of one class and of hardly any
other (98 %), as of a field that is filled in when the event takes place. With up to a tenth of
exceptions this is a suspicion where the smallest amounts in it, the tenth that is nearest to that
value, say nearly as much of the class as all amounts do: the field was filled in, and how much is in
it does not count. Likely too when it is a number that each row has of its own (an id); a suspicion when hardly a row lies between the two classes, or
when a single cut decides 200 rows and more without one exception. Likely as well when 50 rows and
more of the source have amounts of their own in a column that has one common value otherwise, all of
one class; then the score is measured once more with that column scrambled where it enters.
Otherwise the report asks about it. `sawbones audit leaks` measures each feature of a data set alone
against the label, in the test part: AUC of at least 0.95 for a class, R2 of at least 0.95 for a
quantity, or |correlation| of at least 0.9.

## Why it matters
The model is told the answer in the test, and nobody will tell it in use. The score says nothing.

## Looks like
A score that is far better than expected as soon as one feature is added.

## Example
    table["city_rate"] = table.groupby("city")["bought"].transform("mean")
    train, test = table[:8000], table[8000:]

## Use instead
    train, test = table[:8000].copy(), table[8000:].copy()
    by_city = train.groupby("city")["bought"]
    others = by_city.transform("sum") - train["bought"], by_city.transform("count") - 1
    train["city_rate"] = (others[0] / others[1]).fillna(train["bought"].mean())  # without its own row
    test["city_rate"] = test["city"].map(by_city.mean()).fillna(train["bought"].mean())

## Confirm it
The reading itself is exact. For a feature that an audit asks about: train without it, and see
whether the score falls to what the task usually gives.

## False alarms
An encoding made from the labels of the training part, in folds or not, does not change with the
labels of others. A table that already holds what was written after the event often cannot be told
from one that is easy to learn: a strong cause is at most a suspicion, and a smooth one a question.
A cause says more the larger it is: its smallest amounts are found in both classes.
Where rows and labels do not enter together the script may make the rows from the labels, as many
examples do, and nothing is tried; where the split follows the labels in another way than class by
class, all columns change, and nothing follows.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L2. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes"
(2001), which encodes by the target.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, counted, exact, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.schema.populations import CarryingColumn
from sawbones.schema.sources import Moved, WithoutFilled
from sawbones.trace.locate import locate

NEEDS = ("validation",)
USES = ("source_change", "populations")
EXPLAINS = ("evaluation.leak-preprocessing",)
EXPERIMENT = None
MIN_DECIDED = 200  # rows: in fewer the exceptions of a strong cause may be missing
SHOWN = 5  # columns that are named


def check(run: Run) -> Iterator[Finding]:
    trial, filled = run.source_change.labels, run.source_change.filled
    column = run.populations.column
    if trial.outcome == "moved":
        yield _moved(trial)
    elif filled is not None:
        yield _filled_in(filled, trial)
    elif column is not None:
        yield from _carried(column)
    elif trial.outcome != "kept":
        raise NothingToJudge(trial.why or "labels were not exchanged")


def _filled_in(filled: WithoutFilled, trial: Moved) -> Finding:
    """Columns of the source that hold amounts for one class and one common value otherwise."""
    names = ", ".join(filled.names[:SHOWN])
    text = (
        f"{filled.filled} of {filled.rows} rows have a value of their own in {names}, and "
        "all of them belong to one class"
    )
    evidence = [
        counted(text, filled.filled, filled.filled, limits.FILLED_IN, signal="source_change")
    ]
    if filled.metric:
        name = "accuracy" if filled.metric == "classes" else "mean distance"
        scores = (
            f"{name} {filled.claimed:.2f}; {filled.honest:.2f} with {names} scrambled at the "
            "source, in training and in evaluation"
        )
        claimed, honest = filled.claimed, filled.honest
        evidence.append(context(scores, signal="source_change", value=claimed, expected=honest))
    return finding(
        f"{names}: filled in for one class alone",
        locate(trial.entered),
        evidence,
        Fix("Is this known before the event? If not, leave it out of the inputs."),
    )


def _carried(column: CarryingColumn) -> Iterator[Finding]:
    """One column that carries the answer, where something points at how it came about."""
    scores = (
        f"accuracy {column.score:.2f}; {column.scrambled:.2f} with input column "
        f"{column.column} scrambled, {column.alone:.2f} with all {column.width - 1} others "
        f"scrambled, {column.constant:.2f} for the commonest class ({column.rows} rows)"
    )
    said = context(scores, signal="populations", value=column.score, expected=column.scrambled)
    where = locate(*column.sites)
    fix = Fix("Is this column known before the event? If not, leave it out.")
    title = f"Input column {column.column} alone carries the answer"
    if limits.FILLED_IN.reached_by(column.filled):
        text = f"one value of it is that of one class alone, in {column.filled:.1%} of the rows"
        reading = compared(text, column.filled, limits.FILLED_IN, signal="populations")
        yield finding(title, where, (reading, said), fix)
    elif limits.MOSTLY_FILLED_IN.reached_by(column.filled) and limits.AT_ONCE.reached_by(
        column.at_once
    ):
        text = (
            f"one value of it is that of {column.filled:.1%} of one class, or more, and no more than "
            f"{1 - column.filled:.1%} of the other; of what any other value says of the class, "
            f"the tenth nearest to it says {column.at_once:.0%} already: it is not the amount that counts"
        )
        reading = compared(text, column.at_once, limits.AT_ONCE, signal="populations")
        yield finding(title, where, (reading, said), fix, at_most="suspected")
    elif column.is_id:
        text = (
            f"all {column.rows} rows have a number of their own in it, on one even grid: an id "
            "or a row number"
        )
        reading = compared(text, column.score, limits.ABOVE_CHANCE, signal="populations")
        yield finding(title, where, (reading, said), fix)
    elif limits.EMPTY_BETWEEN.undercut_by(column.between):
        text = f"between the classes lie {column.between:.2f} times the rows of an even spread"
        reading = compared(
            text, column.between, limits.EMPTY_BETWEEN, below=True, signal="populations"
        )
        yield finding(title, where, (reading, said), fix, at_most="suspected")
    elif column.exceptions == 0 and column.rows >= MIN_DECIDED:
        text = f"a single cut of it decides all {column.rows} rows: there is not one exception"
        reading = context(text, signal="populations", value=0, expected=None)
        yield finding(title, where, (reading, said), fix, at_most="suspected")


def _moved(trial: Moved) -> Finding:
    """Labels of evaluated rows were exchanged, and inputs moved with them."""
    columns = trial.columns
    shown = ", ".join(map(str, columns[:SHOWN]))
    what = f"; first moved: {trial.name}" if trial.name else ""
    whose = f"{trial.changed} evaluated rows" if trial.changed else "neighbouring evaluated rows"
    return finding(
        "An input of the model is made from the labels of evaluated rows",
        locate(trial.site, trial.caller, trial.entered),
        (
            exact(
                f"labels of {whose} were exchanged: {len(columns)} of "
                f"{trial.width} input columns changed with them (column {shown}), in "
                f"{trial.moved} of {trial.compared} samples compared{what}",
                len(columns),
                expected=0,
                signal="source_change",
            ),
        ),
        Fix(
            "Make the feature from the labels of the training part alone (for the training rows "
            "themselves in folds), or leave it out."
        ),
    )
