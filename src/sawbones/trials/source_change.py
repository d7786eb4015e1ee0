"""Some rows that are only evaluated are changed where they enter the program, and the script runs
again from the same seed: what it trains on must stay as it was, bit for bit.

Real numbers are moved far and texts scrambled; the number of rows, their order, labels, groups and
missing values stay. A second run leaves the rows and exchanges their labels: then every input must
stay. Where the rows are those of a series, a further run changes all rows from one moment on, where
they first appear: what is evaluated from before that moment must stay. A last one makes evaluated
rows copies of training rows (`two_paths.py`). Calls of the model are compared up to the first evaluation, so that a score that steers the
training cannot be mistaken for a leak. Where something moved, a third run without any change must
repeat the first.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.trials.bench import Bench
from sawbones.trials.two_paths import judge_paths

STEPS = 24  # compared of the training, at most
LATEST_EVALUATION = 600  # steps: an evaluation that comes later is not waited for,
QUICK_SECONDS = 90.0  # unless the whole run, observed, took no longer than this
LEAST_ROWS = 20  # compared
TOO_LATE = "the first evaluation comes too late to be repeated"
SPLIT_MOVED = "the split, or the labels of the training rows, moved with the change"

KINDS = ("features", "labels", "future", "paths")
SAME_LINE = 3  # containers of one name, not of all rows: more are single rows, in a loop over them
MOST_MOVED = 0.5  # of rows before the moment: more is a statistic of them all, no look ahead

Plan = Mapping[str, Any]
Calls = Sequence[Mapping[str, Any]]


def change_at_source(bench: Bench, run: Run) -> dict[str, Any]:
    """Plain facts for evaluation.leak-preprocessing, leak-target, leak-temporal and
    preprocessing-mismatch.
    """
    plan = run.facts.get("sources") or {"why": "the script's data were not followed"}
    if plan.get("why"):
        return {kind: {"outcome": "refused", "why": plan["why"]} for kind in KINDS}
    features = _features(bench, run, plan)
    return {
        "features": features,
        "labels": _labels(bench, run, plan),
        "future": _future(bench, run, plan, features),
        "paths": _paths(bench, run, plan),
        "answers_met": plan.get("answers_met"),
    }


def _paths(bench: Bench, run: Run, plan: Plan) -> dict[str, Any]:
    paths, steps = plan.get("paths"), _first_evaluation(run)
    if paths is None:
        return {"outcome": "refused", "why": "too few rows with one label are met by the model"}
    if steps is None:
        return {"outcome": "refused", "why": TOO_LATE}
    change = {**_place(plan), "what": "copies"}
    change |= {key: paths[key] for key in ("rows", "taken", "kept")}
    told = judge_paths(plan, _again(bench, change, steps))
    if paths["made"] is not None:
        told["site"] = _site(bench, *paths["made"])
    return told


def _features(bench: Bench, run: Run, plan: Plan) -> dict[str, Any]:
    """At the table that holds rows and labels, where there is one. What moves only when they are
    changed before that may be how the script makes its data.
    """
    table = plan.get("table")
    if not table:
        return _features_at(bench, run, plan)
    told = _features_at(bench, run, {**plan, **table})
    if told["outcome"] == "moved":
        return told
    before = _features_at(bench, run, plan)
    return {**before, "is_making": True} if before["outcome"] == "moved" else told


def _features_at(bench: Bench, run: Run, plan: Plan) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for only_reals in (False, True):
        change = {**_place(plan), "what": "features", "only_reals": only_reals}
        other = _again(bench, change, min(run.num_steps, STEPS))
        told = judge_features(plan, other)
        if told.get("why") != SPLIT_MOVED and not other.get("failed"):
            break  # fewer changes would not help
    return _with_line(bench, plan, _if_repeatable(bench, plan, told, min(run.num_steps, STEPS)))


def judge_features(plan: Plan, other: Mapping[str, Any]) -> dict[str, Any]:
    """What the training was given, against what it was given with other rows in evaluation."""
    why = _not_comparable(plan, other, "train")
    if why:
        return {"outcome": "refused", "why": why}
    early = set(plan["early"])
    moved = compared = 0
    for a, b in _pairs(plan, other, "train"):
        for before, after in zip(a["rows"], b["rows"], strict=True):
            if before in early:
                compared += 1
                moved += before != after
    if compared < LEAST_ROWS:
        return {"outcome": "refused", "why": "no training row stands before the changed ones"}
    told = {"moved": moved, "compared": compared, "changed": len(plan["rows"])}
    if not moved:
        return {"outcome": "kept", **told}
    return {"outcome": "moved", **told, "first": first_moved(plan["trace"], other["trace"])}


def _future(bench: Bench, run: Run, plan: Plan, features: Plan) -> dict[str, Any]:
    place = plan.get("future")
    if place is None:
        return {"outcome": "refused", "why": "the rows are no series in the order they stand in"}
    if features["outcome"] == "moved":
        return {"outcome": "refused", "why": "training rows follow the evaluated ones already"}
    steps = _first_evaluation(run)
    if steps is None:
        return {"outcome": "refused", "why": TOO_LATE}
    change = {**_place(place), "what": "features"}
    other = _again(bench, change, steps)
    told = judge_future(plan, other)
    return _with_line(bench, place, _if_repeatable(bench, plan, told, steps))


def judge_future(plan: Plan, other: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluated rows from before a moment, against the same with everything changed after it."""
    start, row_of = plan["future"]["rows"][0], plan["row_of"]
    pairs = _pairs(plan, other, "eval")
    why = other.get("why") or ("" if other.get("changed") else "no later value could be changed")
    if why or any(len(a["rows"]) != len(b["rows"]) for a, b in pairs):
        return {"outcome": "refused", "why": why or "other rows are evaluated after the change"}
    before: dict[int, bool] = {}  # row -> whether it moved
    for a, b in pairs:
        for old, new in zip(a["rows"], b["rows"], strict=True):
            row = row_of.get(str(old), -1)
            if 0 <= row < start:
                before[row] = before.get(row, False) or old != new
    if len(before) < LEAST_ROWS:
        return {"outcome": "refused", "why": "too few rows from before the moment are evaluated"}
    moved = [row for row, has_moved in before.items() if has_moved]
    told = {"moved": len(moved), "compared": len(before), "changed": len(plan["future"]["rows"])}
    if not moved:
        return {"outcome": "kept", **told}
    if len(moved) > MOST_MOVED * len(before):
        why = "all evaluated rows move together: each part has statistics of its own"
        return {"outcome": "refused", "why": why}
    told["reach"] = start - min(moved)
    first = first_moved(plan["future"]["trace"], other["trace"])
    return {"outcome": "moved", **told, "first": first}


def _first_evaluation(run: Run) -> int | None:
    """Steps up to the end of the first evaluation; None where that comes too late."""
    evaluated = [e.step for e in run.of_kind("forward") if e.phase == "eval" and e.step > 0]
    if not evaluated or (evaluated[0] > LATEST_EVALUATION and run.seconds > QUICK_SECONDS):
        return None
    return evaluated[0] + 1


def _labels(bench: Bench, run: Run, plan: Plan) -> dict[str, Any]:
    if not plan["together"] and plan.get("table"):
        plan = {**plan, **plan["table"]}
    if not plan["together"] or not plan["labels"]:
        why = "rows and labels do not enter the script together: it may make one from the other"
        return {"outcome": "refused", "why": why}
    until = _first_evaluation(run)
    steps = until or min(run.num_steps, STEPS)
    change = {**_place(plan), "what": "labels", "labels": plan["labels"]}
    told = judge_labels(plan, _again(bench, change, steps))
    if until is None and told["outcome"] == "kept":  # an input of training would have counted
        return {"outcome": "refused", "why": TOO_LATE}
    return _with_line(bench, plan, _if_repeatable(bench, plan, told, steps))


def _if_repeatable(bench: Bench, plan: Plan, told: dict[str, Any], steps: int) -> dict[str, Any]:
    """What moved counts only where it stays when nothing is changed."""
    if told["outcome"] != "moved":
        return told
    control = _again(bench, {**_place(plan), "what": "nothing"}, steps)
    if control.get("why"):  # no time for it, say: nothing is known about the script
        return {"outcome": "refused", "why": control["why"]}
    pairs = [p for phase in ("train", "eval") for p in _pairs(plan, control, phase)]
    if pairs and all(a["rows"] == b["rows"] for a, b in pairs):
        return told
    return {"outcome": "refused", "why": "the script does not repeat itself bit for bit"}


def judge_labels(plan: Plan, other: Mapping[str, Any]) -> dict[str, Any]:
    """Which columns of the inputs follow the labels of rows that are only evaluated."""
    why = _not_comparable(plan, other, "train")
    if why:
        return {"outcome": "refused", "why": why}
    pairs = [p for phase in ("train", "eval") for p in _pairs(plan, other, phase)]
    width = len(pairs[0][0]["columns"])
    changed = {
        i
        for a, b in pairs
        for i, (x, y) in enumerate(zip(a["columns"], b["columns"], strict=True))
        if x != y
    }
    told = {"columns": sorted(changed), "width": width, "changed": len(plan["rows"])}
    rows = [row for a, b in pairs for row in zip(a["rows"], b["rows"], strict=True)]
    known, moved = {before for before, _ in rows}, [b for a, b in rows if a != b]
    told |= {"moved": len(moved), "compared": len(rows)}
    if not changed:
        return {"outcome": "kept", **told}
    if any(after in known for after in moved):
        return {"outcome": "refused", "why": SPLIT_MOVED}  # rows as they were, at other places
    if len(changed) == width:
        why = "all inputs changed with the labels: the split follows them, or they make the inputs"
        return {"outcome": "refused", "why": why}
    return {"outcome": "moved", **told, "first": first_moved(plan["trace"], other["trace"])}


def _place(plan: Plan) -> dict[str, Any]:
    keys = ("file", "function", "at", "names", "count", "rows", "by_hand")
    return {key: plan[key] for key in keys if key in plan}


def _again(bench: Bench, change: Mapping[str, Any], steps: int) -> Mapping[str, Any]:
    try:
        second = bench.rerun(
            max_steps=steps,
            sources=True,
            journal=bool(change.get("by_hand")),  # else the targets are not seen
            extra={"source_change": dict(change)},
        )
    except SawbonesError as error:
        return {"why": str(error).splitlines()[0], "calls": (), "changed": ()}
    found: Mapping[str, Any] = second.facts.get("sources") or {}
    if not found.get("calls") and second.ending.kind == "exception":
        why = f"the script fails with other rows ({second.ending.exception})"
        return {"why": why, "calls": (), "changed": (), "failed": True}
    return found


def _of(calls: Calls, phase: str) -> list[Mapping[str, Any]]:
    return [c for c in calls if c["phase"] == phase]


def _pairs(
    plan: Plan, other: Mapping[str, Any], phase: str
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return list(zip(_of(plan["calls"], phase), _of(other["calls"], phase), strict=False))


def _not_comparable(plan: Plan, other: Mapping[str, Any], phase: str) -> str:
    """Why nothing follows from this run: nothing was changed, or the split moved with it."""
    if other.get("why"):
        return str(other["why"])
    if not other.get("changed"):
        return "no value of the evaluated rows could be changed"
    pairs = _pairs(plan, other, phase)
    if not pairs:
        return "no training call could be compared"
    if not pairs[0][0]["real"]:
        return "the model is given ids: a vocabulary may number them otherwise without a leak"
    if any(a["targets"] is None or b["targets"] is None for a, b in pairs):
        return "the targets of training calls were not recognised"
    if any(len(a["rows"]) != len(b["rows"]) or a["targets"] != b["targets"] for a, b in pairs):
        return SPLIT_MOVED
    return ""


def first_moved(before: Iterable[Sequence[Any]], after: Iterable[Sequence[Any]]) -> Any:
    """[file, function, line, name, caller] of the first value that changed although it holds none
    of the changed rows; None where none was held.
    """
    seen: dict[tuple[Any, ...], list[Sequence[Any]]] = {}
    for row in after:
        seen.setdefault(tuple(row[:4]), []).append(row)
    before = list(before)
    times = Counter(tuple(row[:4]) for row in before if row[4] == "rows")
    for row in before:
        others = seen.get(tuple(row[:4]))
        other = others.pop(0) if others else None
        is_one_row = not row[6] and times[tuple(row[:4])] > SAME_LINE
        if other is None or row[4] == "evaluated" or is_one_row:
            continue
        if row[6] and other[6]:
            if row[6] != other[6]:
                return [*row[:4], row[7]]
        elif row[5] != other[5] and not (row[6] or other[6]):
            return [*row[:4], row[7]]
    return None


def _with_line(bench: Bench, plan: Plan, told: dict[str, Any]) -> dict[str, Any]:
    told["entered"] = _site(bench, plan["file"], plan["function"], plan["line"])
    if told.get("first"):
        file, function, line, name, caller = told.pop("first")
        told |= {"site": _site(bench, file, function, line), "name": name}
        if caller and function != plan["function"]:
            told["caller"] = _site(bench, *caller)
    return told


def _site(bench: Bench, file: str, function: str, line: int) -> dict[str, Any]:
    code = _code(bench, file, line)
    return {"file": file, "line": line, "function": function, "code": code}


def _code(bench: Bench, file: str, line: int) -> str:
    return linecache.getline(str(bench.patient.working_folder / file), line).strip()[:200]
