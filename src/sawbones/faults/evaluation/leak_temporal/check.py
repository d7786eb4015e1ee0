"""Training data from after the moment of the test data

## What it sees
Tables, series and arrays of dates that the script holds when training begins. Fires when two of
them share no moment, together are an evenly spaced series (hours, days, months), hold as many rows
as are trained on and evaluated, and follow each other in time as often as rows that were dealt out
at random: at least half as often. Or windows of a series, with no date in sight: fires when at
least half of the evaluated windows are overlapped, bit by bit, by a trained window that goes on
into their future, and the targets are later steps of that same series, or sums of them; or, of
windows that were scaled since, that half of the values asked for in evaluation are inputs of
training rows where those are made. Or, where rows bear a date of any spacing, by a trial: training
rows from the time of the last evaluated ones on are overwritten with earlier ones, the script runs
again, and the score over these evaluated rows falls by at least 5 points, beyond what fewer
training rows cost. Rows without a date are tried in the order in which they stand where they are
like moments of a process. Proven where all rows from one moment on are changed at their source and
evaluated rows from shortly before it change with them (centred windows, filling from behind).
Windows are found again in their series by their values, or in stretches of it that were scaled by
themselves; it is changed where what they are asked for (the first of several values) is there, right
behind the end of a window, and only where the answer lies behind that end.
`sawbones audit leaks --time COLUMN` looks at data sets, whatever their spacing, and shows the score
of a small model under both splits.

## Why it matters
In use the model only has the past. A score that was earned with the future in the training data
does not come back.

## Looks like
Good validation, bad first week in production; a back-test split by date gives a much lower score.

## Example
    train, test = train_test_split(hours, test_size=0.2, shuffle=True)

## Use instead
    hours = hours.sort_values("time")
    train, test = train_test_split(hours, test_size=0.2, shuffle=False)

## Confirm it
`sawbones diagnose` runs the script again without the training rows from after a moment, and shows
the score over the evaluated rows from then on, before and after.

## False alarms
Records that merely bear a date (orders, patients, pictures) are answered as well without the rows
from after their time: the trial leaves them alone. Parts of a split by time follow each other once,
those of a rolling back-test a few times. Windows of parts cut at one moment overlap at the cut
alone. Folds that each train a model of their own are left alone, and so are windows that are
classified. What a script smooths to make up a series comes before what it asks for, and is not
changed. Rows that are sorted by their label, or are points of a formula, are no process over time,
and no trial is made. Rows that are neither trained on nor evaluated do not count.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L3.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, counted, exact, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.evidence.strangers import fall, fallen, tried_apart
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.held import HeldTimes, Strangers
from sawbones.schema.samples import LaterWindows, Samples
from sawbones.schema.sources import Moved
from sawbones.stats.splits import Split, splits
from sawbones.trace.feeding import built_loaders
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import dealing_lines

NEEDS = ("batches", "validation", "steps")
USES = (
    "held_times",
    "samples",
    "strangers",
    "source_change",
    "source_lines",
    "source_calls",
    "loaders",
    "restored",
)
EXPLAINS = ()
EXPERIMENT = None
MIN_TURNS = 10  # in time, from one part to the other: a rolling back-test has a few


def check(run: Run) -> Iterator[Finding]:
    pairs = run.held_times
    seen = (run.samples or Samples()).later_windows
    windows = seen if seen is not None and seen.ahead else None
    ahead, met = run.source_change.future, run.source_change.answers_met
    if ahead.outcome == "moved":
        yield _looks_ahead(ahead)
        return
    fell = fallen(run, "time")
    if fell is not None:
        yield _of_trial(run, fell)
        return
    tried = tried_apart(run, "time") or ahead.outcome == "kept"
    if not pairs and not windows and not tried and not met:
        raise NothingToJudge("the script holds no dates of two parts, and no windows of a series")
    parts = splits(run)
    found = (
        (pair, part, rows)
        for pair in pairs
        if _dealt_out(pair)
        for part in parts
        if (rows := _evaluated_as(pair, part)) is not None
    )
    dealt = next(found, None)
    if dealt is not None:
        yield _of_dates(run, *dealt)
    elif len(parts) > 1:
        return  # folds: what one evaluates the next one trains on
    elif windows and limits.LATER_WINDOWS.reached_by(windows.later):
        yield _of_windows(run, parts, windows)
    elif met and limits.LATER_WINDOWS.reached_by(met[0] / met[1]):
        yield _of_answers(run, parts, *met)


def _looks_ahead(told: Moved) -> Finding:
    """Rows from one moment on were changed, and evaluated rows from before it moved."""
    what = f"; first moved: {told.name}" if told.name else ""
    text = (
        f"all {told.changed} rows from one moment on were changed where they enter the script: "
        f"{told.moved} of {told.compared} evaluated rows from before it changed with them, "
        f"up to {told.reach} rows back{what}"
    )
    return finding(
        "Features of a row are made from later rows",
        locate(told.site, told.caller, told.entered),
        (exact(text, told.moved, expected=0, signal="source_change"),),
        Fix(
            "Make features from rows up to their own moment: no centred windows, no filling or "
            "joining from behind; shift what is known only later."
        ),
    )


def _dealt_out(pair: HeldTimes) -> bool:
    return (
        pair.turns >= MIN_TURNS
        and limits.EVENLY_SPACED.reached_by(pair.even)
        and limits.DEALT_OUT.reached_by(pair.turns / max(pair.turns_if_dealt, 1))
    )


def _of_dates(run: Run, pair: HeldTimes, part: Split, rows: tuple[int, int]) -> Finding:
    train, held = rows
    times = (
        f"{pair.rows[train]} rows that are trained on run from {pair.first[train]} to "
        f"{pair.last[train]}, {pair.rows[held]} that are evaluated from "
        f"{pair.first[held]} to {pair.last[held]}"
    )
    turns = (
        f"in the order of time they follow each other {pair.turns} times; rows dealt out at "
        f"random {pair.turns_if_dealt:.0f} times, parts cut at one moment once"
    )
    return finding(
        "A series in time is split row by row: training knows the future",
        _where(run, [part]),
        (
            context(times, signal="held_times"),
            compared(
                turns,
                pair.turns,
                limits.DEALT_OUT,
                against=max(pair.turns_if_dealt, 1),
                expected=1,
                signal="held_times",
            ),
        ),
        Fix(
            "Split by time: everything up to one moment for training, everything "
            "after it for testing (shuffle=False)."
        ),
    )


def _of_trial(run: Run, told: Strangers) -> Finding:
    return finding(
        "Rows are split without regard to time, and the score is owed to later ones",
        dealing_lines(run)[:4],
        (fall(told),),
        Fix(
            "Split by time: everything up to one moment for training, everything "
            "after it for testing (shuffle=False)."
        ),
    )


def _of_windows(run: Run, parts: list[Split], seen: LaterWindows) -> Finding:
    text = (
        f"of {seen.evaluated} evaluated windows of {seen.steps} steps, {seen.later:.0%} "
        f"are overlapped by one of the {seen.trained} trained windows that ends later; what is "
        f"asked for is made of the series up to {seen.ahead} after the last step"
    )
    return finding(
        "Windows of one series are dealt out at random: training knows the future",
        _where(run, parts),
        (compared(text, seen.later, limits.LATER_WINDOWS, expected=0, signal="samples"),),
        Fix(
            "Cut the series at one moment, and make the windows of each part from that part alone."
        ),
    )


def _of_answers(run: Run, parts: list[Split], met: int, looked_at: int) -> Finding:
    text = (
        f"of {looked_at} evaluated rows of a series, {met} are asked for a value that is among the "
        "inputs of training rows, and not among their own: those rows are from later on"
    )
    return finding(
        "Rows of one series are dealt out at random: training knows the future",
        _where(run, parts),
        (counted(text, met, looked_at, limits.LATER_WINDOWS, signal="source_change"),),
        Fix(
            "Cut the series at one moment, and make the windows of each part from that part alone."
        ),
    )


def _evaluated_as(pair: HeldTimes, part: Split) -> tuple[int, int] | None:
    """(which of the two is trained on, which is evaluated), by the number of their rows."""
    trained = part.trained_on
    for batches in part.sources().values():
        evaluated = {f for b in batches for f in b.fingerprints} - trained
        for train, held in ((0, 1), (1, 0)):
            if _as_many(trained, pair.rows[train]) and _as_many(evaluated, pair.rows[held]):
                return train, held
    return None


def _as_many(seen: set[int], rows: int) -> bool:
    return len(seen) <= rows and limits.ROWS_SEEN.reached_by(len(seen) / max(rows, 1))


def _where(run: Run, parts: list[Split]) -> tuple[Site, ...]:
    loaders = built_loaders(run, *sorted(s for part in parts for s in part.trained_sources))
    return locate(*dealing_lines(run), *loaders)[:4]
