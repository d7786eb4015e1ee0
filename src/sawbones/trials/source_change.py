"""Some rows that are only evaluated are changed where they enter the program, and the script runs
again from the same seed: what it trains on must stay as it was, bit for bit.

Real numbers are moved far and texts scrambled; the number of rows, their order, labels, groups and
missing values stay. A second run leaves the rows and exchanges their labels: then every input must
stay. Where the split follows the labels (a stratified one), only labels of rows that stand next to one
another in the lists of their classes are exchanged, which leaves the training part as it was
(`observe/sources/neighbours.py`). Where the rows are those of a series, or windows of one, a further run changes all rows from one
moment on, where they first appear: what is evaluated from before that moment must stay, and so must
training windows that all end before it. A last one makes evaluated
rows copies of training rows (`two_paths.py`). Calls of the model are compared up to the first evaluation, so that a score that steers the
training cannot be mistaken for a leak. Where something moved, a run without any change must repeat the
first: its twin, as far as training goes, or one more.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sawbones.schema import Run, Site
from sawbones.schema.errors import SawbonesError
from sawbones.schema.sources import (
    FollowedCall,
    Future,
    HeldValue,
    Moved,
    Place,
    PreparedTwice,
    RowChange,
    SourceChange,
    Sources,
)
from sawbones.trials.bench import Bench
from sawbones.trials.two_paths import judge_paths

STEPS = 24  # compared of the training, at most
LATEST_EVALUATION = 600  # steps: an evaluation that comes later is not waited for,
QUICK_SECONDS = 90.0  # unless the whole run, observed, took no longer than this
LEAST_ROWS = 20  # compared
TOO_LATE = "the first evaluation comes too late to be repeated"
SPLIT_MOVED = "the split, or the labels of the training rows, moved with the change"

FAILS = "the script fails with other rows"
SAME_LINE = 3  # containers of one name, not of all rows: more are single rows, in a loop over them
MOST_MOVED = 0.5  # of rows before the moment: more is a statistic of them all, no look ahead


def change_at_source(bench: Bench, run: Run) -> SourceChange:
    """For evaluation.leak-preprocessing, leak-target, leak-temporal and preprocessing-mismatch."""
    plan = run.sources
    of_windows, later = _windows(bench, run, plan)
    if plan.place is None:
        why = plan.why or "the script's data were not followed"
        others = _refused(why), PreparedTwice("refused", why)
        if plan.windows is None:
            return SourceChange(_refused(why), others[0], _refused(why), others[1])
        return SourceChange(of_windows, others[0], later, others[1])
    is_settled = of_windows.outcome == "moved"
    features = of_windows if is_settled else _features(bench, run, plan, plan.place)
    is_known = later.outcome in ("moved", "kept")
    return SourceChange(
        features=features,
        labels=_labels(bench, run, plan, plan.place),
        future=later if is_known else _future(bench, run, plan, features),
        paths=_paths(bench, run, plan, plan.place),
        answers_met=plan.answers_met,
    )


def _refused(why: str) -> Moved:
    return Moved("refused", why)


def _paths(bench: Bench, run: Run, plan: Sources, place: Place) -> PreparedTwice:
    paths, steps = plan.paths, _first_evaluation(run)
    if paths is None:
        return PreparedTwice("refused", "too few rows with one label are met by the model")
    if steps is None:
        return PreparedTwice("open", TOO_LATE)
    kept = {"train": paths.train, "eval": paths.eval}
    change = RowChange(place, plan.count, paths.rows, "copies", taken=paths.taken, kept=kept)
    told = judge_paths(paths, _again(bench, change, steps, plan.by_hand))
    return told if paths.made is None else replace(told, site=_with_code(bench, paths.made))


def _features(bench: Bench, run: Run, plan: Sources, place: Place) -> Moved:
    """At the table that holds rows and labels, where there is one. What moves only when they are
    changed before that may be how the script makes its data.
    """
    if plan.table is None:
        return _features_at(bench, run, plan, place)
    told = _features_at(bench, run, plan, plan.table)
    if told.outcome == "moved":
        return told
    before = _features_at(bench, run, plan, place)
    return replace(before, is_making=True) if before.outcome == "moved" else told


def _features_at(bench: Bench, run: Run, plan: Sources, place: Place) -> Moved:
    told = Moved()
    steps = min(run.num_steps, STEPS)
    for only_reals in (False, True):
        change = RowChange(place, plan.count, plan.rows, "features", only_reals)
        other = _again(bench, change, steps, plan.by_hand)
        told = judge_features(plan, other)
        if told.why != SPLIT_MOVED and not other.why.startswith(FAILS):
            break  # fewer changes would not help
    if not _has_repeated(run, steps):
        told = _if_repeatable(bench, plan, place, told, steps)
    return _with_line(bench, place, told)


def _has_repeated(run: Run, steps: int) -> bool:
    """Whether the run's twin had the same losses bit for bit, as far as training is compared: no
    other control is needed for what the training is given.
    """
    twin, losses = run.twin_run, run.losses[:steps]
    return (
        twin is not None
        and twin.differs is None
        and twin.steps >= steps
        and len(losses) == steps
        and bool(np.all(np.isfinite(losses)))
    )


def judge_features(plan: Sources, other: Sources) -> Moved:
    """What the training was given, against what it was given with other rows in evaluation."""
    why = _not_comparable(plan, other, "train")
    if why:
        return _refused(why)
    early = set(plan.early)
    moved = compared = 0
    for a, b in _pairs(plan, other, "train"):
        for before, after in zip(a.rows, b.rows, strict=True):
            if before in early:
                compared += 1
                moved += before != after
    if compared < LEAST_ROWS:
        return _refused("no training row stands before the changed ones")
    told = Moved("kept", "", moved, compared, len(plan.rows))
    return _moved(told, plan.trace, other.trace) if moved else told


def _future(bench: Bench, run: Run, plan: Sources, features: Moved) -> Moved:
    future = plan.future
    if future is None or plan.place is None:
        return _refused("the rows are no series in the order they stand in")
    if features.outcome == "moved":
        return _refused("training rows follow the evaluated ones already")
    steps = _first_evaluation(run)
    if steps is None:
        return _refused(TOO_LATE)
    other = _again(bench, RowChange(future.place, plan.count, future.rows, "features"), steps)
    told = judge_future(plan, future, other)
    return _with_line(bench, future.place, _if_repeatable(bench, plan, plan.place, told, steps))


def judge_future(plan: Sources, future: Future, other: Sources) -> Moved:
    """Evaluated rows from before a moment, against the same with everything changed after it."""
    start = future.rows[0]
    pairs = _pairs(plan, other, "eval")
    why = other.why or ("" if other.changed else "no later value could be changed")
    if why or any(len(a.rows) != len(b.rows) for a, b in pairs):
        return _refused(why or "other rows are evaluated after the change")
    before: dict[int, bool] = {}  # row -> whether it moved
    for a, b in pairs:
        for old, new in zip(a.rows, b.rows, strict=True):
            row = plan.row_of.get(old, -1)
            if 0 <= row < start:
                before[row] = before.get(row, False) or old != new
    if len(before) < LEAST_ROWS:
        return _refused("too few rows from before the moment are evaluated")
    moved = [row for row, has_moved in before.items() if has_moved]
    told = Moved("kept", "", len(moved), len(before), len(future.rows))
    if not moved:
        return told
    if len(moved) > MOST_MOVED * len(before):
        return _refused("all evaluated rows move together: each part has statistics of its own")
    return _moved(replace(told, reach=start - min(moved)), future.trace, other.trace)


def _windows(bench: Bench, run: Run, plan: Sources) -> tuple[Moved, Moved]:
    """Training rows, and evaluated ones from before a moment, where all rows are stretches of a
    series that was changed from that moment on: one run for both questions.
    """
    windows = plan.windows
    if windows is None:
        return _refused("the rows are no stretches of one series"), Moved("refused")
    until = _first_evaluation(run) if windows.ahead else None
    steps = until or min(run.num_steps, STEPS)
    change = RowChange(windows.place, windows.count, windows.rows, "features")
    other = _again(bench, change, steps, plan.by_hand)
    seen = replace(
        plan,
        count=windows.count,
        rows=windows.rows,
        early=windows.early,
        row_of=windows.row_of,
        trace=windows.trace,
    )
    features = judge_features(seen, other)
    future = Future(windows.place, windows.rows, windows.trace)
    if features.outcome == "moved":
        later = _refused("training rows follow the later ones already")
    elif not windows.ahead:
        later = _refused("what is asked for was not found in the series, later")
    elif until is None:
        later = _refused(TOO_LATE)
    else:
        later = judge_future(seen, future, other)
    place = windows.place
    if not _has_repeated(run, min(run.num_steps, STEPS)):
        features = _if_repeatable(bench, seen, place, features, steps)
    later = _if_repeatable(bench, seen, place, later, steps)
    return _with_line(bench, place, features), _with_line(bench, place, later)


def _first_evaluation(run: Run) -> int | None:
    """Steps up to the end of the first evaluation; None where that comes too late."""
    evaluated = [e.step for e in run.of_kind("forward") if e.phase == "eval" and e.step > 0]
    if not evaluated or (evaluated[0] > LATEST_EVALUATION and run.seconds > QUICK_SECONDS):
        return None
    return evaluated[0] + 1


def _labels(bench: Bench, run: Run, plan: Sources, place: Place) -> Moved:
    """Where rows and labels do not enter together, the script may make a row from its own label;
    what it makes from the labels of other rows counts there too.
    """
    if not place.together:
        place = plan.table or place
    apart = _refused(
        "rows and labels do not enter the script together: it may make one from the other"
    )
    if not place.labels:
        return apart
    until = _first_evaluation(run) if place.together else None
    steps = until or min(run.num_steps, STEPS)
    change = RowChange(place, plan.count, plan.rows, "labels")
    other = _again(bench, change, steps, plan.by_hand)
    told = judge_labels(plan, other) if place.together else judge_labels_of_others(plan, other)
    if told.why == SPLIT_MOVED:
        change = replace(change, what="neighbours")
        other = _again(bench, change, steps, plan.by_hand)
        told = judge_neighbours(plan, other, place.together)
    if until is None and told.outcome == "kept":  # an input of training would have counted
        return _refused(TOO_LATE) if place.together else apart
    if place.together or not _has_repeated(run, steps):
        told = _if_repeatable(bench, plan, place, told, steps)
    return _with_line(bench, place, told)


def _if_repeatable(bench: Bench, plan: Sources, place: Place, told: Moved, steps: int) -> Moved:
    """What moved counts only where it stays when nothing is changed."""
    if told.outcome != "moved":
        return told
    change = RowChange(place, plan.count, plan.rows, "nothing")
    control = _again(bench, change, steps, plan.by_hand)
    if control.why:  # no time for it, say: nothing is known about the script
        return _refused(control.why)
    pairs = [p for phase in ("train", "eval") for p in _pairs(plan, control, phase)]
    if pairs and all(a.rows == b.rows for a, b in pairs):
        return told
    return _refused("the script does not repeat itself bit for bit")


def judge_labels_of_others(plan: Sources, other: Sources) -> Moved:
    """The same for training rows that stand before all whose labels were exchanged: a script that
    draws its rows class by class draws others for those behind.
    """
    early = set(plan.early)
    pairs = _pairs(plan, other, "train")
    rows = [row for a, b in pairs for row in zip(a.rows, b.rows, strict=False) if row[0] in early]
    moved = sum(before != after for before, after in rows)
    if len(rows) < LEAST_ROWS or not moved:
        return Moved("kept", "", moved, len(rows), len(plan.rows))
    return replace(judge_labels(plan, other, ("train",)), moved=moved, compared=len(rows))


def judge_labels(plan: Sources, other: Sources, phases: Sequence[str] = ("train", "eval")) -> Moved:
    """Which columns of the inputs follow the labels of rows that are only evaluated."""
    why = _not_comparable(plan, other, "train")
    if why:
        return _refused(why)
    pairs = [p for phase in phases for p in _pairs(plan, other, phase)]
    width = len(pairs[0][0].columns)
    changed = {
        i
        for a, b in pairs
        for i, (x, y) in enumerate(zip(a.columns, b.columns, strict=True))
        if x != y
    }
    rows = [row for a, b in pairs for row in zip(a.rows, b.rows, strict=True)]
    known, moved = {before for before, _ in rows}, [b for a, b in rows if a != b]
    counts = len(moved), len(rows), len(plan.rows)
    told = Moved("kept", "", *counts, columns=tuple(sorted(changed)), width=width)
    if not changed:
        return told
    if any(after in known for after in moved):
        return _refused(SPLIT_MOVED)  # rows as they were, at other places
    if len(changed | _unvarying(plan)) == width:
        return _refused(
            "all inputs changed with the labels: the split follows them, or they make the inputs"
        )
    return _moved(told, plan.trace, other.trace)


def judge_neighbours(plan: Sources, other: Sources, together: bool) -> Moved:
    """The same where a split by classes follows the labels, and rows that stand next to one another
    in the lists of their classes have exchanged theirs: the training rows stay, evaluated ones may
    stand at other places. Evaluated rows are compared one by one, wherever they stand; which column
    moved is then not known, and nothing follows from those that did.
    """
    of_training = judge_labels(plan, other, ("train",))
    told = of_training if together else judge_labels_of_others(plan, other)
    told = replace(told, changed=0)  # how many is not known
    if told.outcome != "kept" or not together:
        return told
    pairs = _pairs(plan, other, "eval")
    before, after = (Counter(row for pair in pairs for row in pair[i].rows) for i in (0, 1))
    return told if before == after else _refused(SPLIT_MOVED)


def _unvarying(plan: Sources) -> set[int]:
    """Columns with the same values in other training rows: that they stay says nothing. None where
    all training calls are given the same rows.
    """
    calls = [c for c in plan.calls if c.phase == "train"]
    alike = [c for c in calls if len(c.rows) == len(calls[0].rows)]
    if len({c.rows for c in alike}) < 2:
        return set()
    columns = zip(*(c.columns for c in alike), strict=True)
    return {i for i, hashes in enumerate(columns) if len(set(hashes)) == 1}


def _moved(told: Moved, before: Sequence[HeldValue], after: Sequence[HeldValue]) -> Moved:
    told = replace(told, outcome="moved")
    first = first_moved(before, after)
    if first is None:
        return told
    return replace(told, name=first.name, site=first.site, caller=first.caller)


def _again(bench: Bench, change: RowChange, steps: int, by_hand: bool = False) -> Sources:
    try:
        second = bench.rerun(
            max_steps=steps,
            sources=True,
            journal=by_hand,  # else the targets are not seen
            extra={"source_change": change},
        )
    except SawbonesError as error:
        return Sources(str(error).splitlines()[0])
    if not second.sources.calls and second.ending.kind == "exception":
        return Sources(f"{FAILS} ({second.ending.exception})")
    return second.sources


def _pairs(plan: Sources, other: Sources, phase: str) -> list[tuple[FollowedCall, FollowedCall]]:
    before, after = ([c for c in side.calls if c.phase == phase] for side in (plan, other))
    return list(zip(before, after, strict=False))


def _not_comparable(plan: Sources, other: Sources, phase: str) -> str:
    """Why nothing follows from this run: nothing was changed, or the split moved with it."""
    if other.why:
        return other.why
    if not other.changed:
        return "no value of the evaluated rows could be changed"
    pairs = _pairs(plan, other, phase)
    if not pairs:
        return "no training call could be compared"
    if not pairs[0][0].is_real:
        return "the model is given ids: a vocabulary may number them otherwise without a leak"
    if any(a.targets is None or b.targets is None for a, b in pairs):
        return "the targets of training calls were not recognised"
    if any(len(a.rows) != len(b.rows) or a.targets != b.targets for a, b in pairs):
        return SPLIT_MOVED
    return ""


def first_moved(before: Sequence[HeldValue], after: Sequence[HeldValue]) -> HeldValue | None:
    """The first value that changed although it holds none of the changed rows; None where none was
    held.
    """
    seen: dict[tuple[Site, str], list[HeldValue]] = {}
    for row in after:
        seen.setdefault((row.site, row.name), []).append(row)
    times = Counter((row.site, row.name) for row in before if row.kind == "rows")
    for row in before:
        others = seen.get((row.site, row.name))
        other = others.pop(0) if others else None
        is_one_row = not row.kept and times[row.site, row.name] > SAME_LINE
        if other is None or row.kind == "evaluated" or is_one_row:
            continue
        if row.kept and other.kept:
            if row.kept != other.kept:
                return row
        elif row.digest != other.digest and not (row.kept or other.kept):
            return row
    return None


def _with_line(bench: Bench, place: Place, told: Moved) -> Moved:
    is_elsewhere = told.site is not None and told.site.function != place.function
    return replace(
        told,
        entered=_with_code(bench, Site(place.file, place.line, place.function)),
        site=_with_code(bench, told.site),
        caller=_with_code(bench, told.caller) if is_elsewhere else None,
    )


def _with_code(bench: Bench, site: Site | None) -> Site | None:
    if site is None:
        return None
    file = str(bench.patient.working_folder / site.file)
    return replace(site, code=linecache.getline(file, site.line).strip()[:200])
