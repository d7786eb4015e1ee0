"""Curves alone -> Report: the symptoms that a logged loss shows, and what a recording would add.

A curve has no null of its own: what a constant answer scores, how many optimizers there are and
what the loss is are not in it. So only what is certain without them is called ill (values that are
not finite, a loss that explodes); a loss that does not fall, or climbs a little, is notable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import CouldNotSee, Ending, Report, Run, Symptom
from sawbones.schema.curve import Curve, Log
from sawbones.schema.errors import SawbonesError
from sawbones.schema.run import STEP_COLUMNS
from sawbones.stats.levels import apart, level, part
from sawbones.stats.series import finite
from sawbones.stats.supervised import beginning, latest_fall
from sawbones.symptoms import all_symptoms
from sawbones.symptoms.overfits import rises_after_its_best

Floats = npt.NDArray[np.float64]
_EVALUATED = re.compile(r"(^|[^a-z])(val|valid|validation|eval|test|dev)([^a-z]|$)")
UNSEEN = "a curve does not hold it; sawbones run train.py records it"
SHAPES = ("spikes", "plateau-then-jump")  # read off the numbers alone


class CurveNotFound(SawbonesError):
    """The log has no curve of that name, or none that is called a loss."""


def diagnose_log(log: Log, loss: str | None = None, validation: str | None = None) -> Report:
    trained = _chosen(log, loss, False)
    evaluated = _chosen(log, validation, True)
    if trained is None:
        raise CurveNotFound(
            f"no curve in {log.source} is called a training loss. Say which: --loss NAME. There "
            f"are: {', '.join(log.names[:12])}"
        )
    seen, unseen = _look(trained, evaluated)
    used = f"read off {trained.name} ({len(trained.points)} values)"
    used += f" and {evaluated.name} ({len(evaluated.points)})" if evaluated else ""
    ill = any(symptom.cls == "ill" for symptom in seen)
    return Report(
        verdict="unexplained" if ill else "inconclusive",
        script=log.source,
        steps=trained.steps[-1] + 1,
        seconds=0.0,
        symptoms=tuple(sorted(seen, key=lambda s: s.cls)),
        could_not_see=tuple(unseen),
        environment={"log": {"curves": log.names, "loss": trained.name}},
        notes=(used, *log.notes, *_more(seen)),
    )


def _chosen(log: Log, name: str | None, evaluated: bool) -> Curve | None:
    """By the name that was given, else the longest curve that is called a loss."""
    if name is not None:
        found = log.named(name)
        if found is None:
            listed = ", ".join(log.names[:12])
            raise CurveNotFound(f"no curve {name!r} in {log.source}. There are: {listed}")
        return found
    called = [c for c in log.curves if "loss" in c.name.lower()]
    fitting = [c for c in called if bool(_EVALUATED.search(c.name.lower())) == evaluated]
    return max(fitting, key=lambda c: len(c.points), default=None)


def _look(trained: Curve, evaluated: Curve | None) -> tuple[list[Symptom], list[CouldNotSee]]:
    values = np.asarray(trained.values, np.float64)
    looks: dict[str, Callable[[], Symptom | None]] = {
        "non-finite": lambda: _non_finite(trained, values),
        "diverges": lambda: _climbs(trained, values),
        "does-not-learn": lambda: _flat(trained, values),
        "overfits": lambda: _overfits(trained, evaluated),
    }
    by_name = {watched.symptom: watched for watched in all_symptoms()}
    for name in SHAPES:
        looks[name] = lambda shape=by_name[name].function: _shape(trained, values, shape)  # type: ignore[misc]
    seen: list[Symptom] = []
    unseen: list[CouldNotSee] = []
    for name, watched in by_name.items():
        if name not in looks:
            unseen.append(CouldNotSee(name, UNSEEN))
            continue
        try:
            found = looks[name]()
        except NothingToJudge as why:
            unseen.append(CouldNotSee(name, str(why)))
            continue
        if found is not None:
            cls = found.cls or watched.cls
            seen.append(replace(found, symptom=name, cls=cls))
    return seen, unseen


def _non_finite(curve: Curve, values: Floats) -> Symptom | None:
    bad = np.flatnonzero(~np.isfinite(values))
    if not len(bad):
        return None
    first = curve.steps[int(bad[0])]
    text = f"{len(bad)} of {len(values)} logged losses are not finite, the first at step {first}"
    return Symptom("", "", text, float(values[bad[0]]), None, (first,))


def _climbs(curve: Curve, values: Floats) -> Symptom | None:
    known = _enough(values)
    begin, end = beginning(known), level(part(known, 0.75, 1.0))
    if begin.mean <= 0:
        raise NothingToJudge("the loss starts at or below zero: how far it climbs has no scale")
    risen = (end.mean - begin.mean) / begin.mean
    above = float(part(known, 0.75, 1.0).min()) > float(part(known, 0.0, 0.1).max())
    if not (
        limits.RISE_OVER_START.reached_by(risen)
        and (above or limits.APART.reached_by(apart(end, begin)))
    ):
        return None
    ill = limits.EXPLODES.reached_by(end.mean / begin.mean)
    text = f"the loss climbs from {begin.mean:.4g} to {end.mean:.4g}"
    text += "" if ill else "; for a game of two networks or a return that may be as it should"
    return Symptom(
        "",
        "ill" if ill else "notable",
        text,
        end.mean,
        begin.mean,
        (curve.steps[0], curve.steps[-1]),
    )


def _flat(curve: Curve, values: Floats) -> Symptom | None:
    known = _enough(values)
    begin, end = beginning(known), level(part(known, 0.75, 1.0))
    if begin.mean <= 0:
        raise NothingToJudge("the loss starts at or below zero: how far it falls has no scale")
    fallen = (begin.mean - end.mean) / begin.mean
    if (
        limits.GAIN_OVER_CONSTANT.reached_by(fallen)
        or limits.RISE_OVER_START.reached_by(-fallen)
        or limits.STILL_FALLING.reached_by(latest_fall(known))
    ):
        return None
    text = (
        f"the loss does not fall ({begin.mean:.4g} to {end.mean:.4g} over {len(known)} logged "
        "values); whether that is as low as it can be, the curve does not say"
    )
    steps = (curve.steps[0], curve.steps[-1])
    return Symptom("", "notable", text, end.mean, begin.mean, steps)


def _overfits(trained: Curve, evaluated: Curve | None) -> Symptom | None:
    if evaluated is None:
        raise NothingToJudge("the log has no curve of an evaluation loss")
    rows = np.searchsorted(trained.steps, evaluated.steps)
    found = rises_after_its_best(rows, np.asarray(evaluated.values), np.asarray(trained.values))
    if found is None:
        return None
    best = int(np.argmin(evaluated.values))
    steps = (evaluated.steps[best], evaluated.steps[-1])
    text = re.sub(r"at step \d+", f"at step {steps[0]}", found.text, count=1)
    return replace(found, cls="", text=text, steps=steps)


def _shape(curve: Curve, values: Floats, look: Callable[[Run], Symptom | None]) -> Symptom | None:
    """A symptom that reads the losses only. It counts in rows; the log has steps of its own."""
    found = look(_as_run(values))
    if found is None or curve.steps == list(range(len(values))):
        return found
    at = tuple(curve.steps[min(step, len(values) - 1)] for step in found.steps)
    text = f"{found.text} (counted in logged values; from step {at[0]} of the run)"
    return replace(found, text=text, steps=at)


def _as_run(values: Floats) -> Run:
    empty = np.full(len(values), np.nan)
    steps = dict.fromkeys(STEP_COLUMNS, empty)
    steps |= {"step": np.arange(len(values), dtype=np.float64), "loss": values}
    steps["optimizer"] = np.zeros(len(values))
    return Run("log", (), "", {}, Ending("finished"), steps=steps)


def _enough(values: Floats) -> Floats:
    known = finite(values)
    if not limits.LOGGED_TO_TELL.reached_by(len(known)):
        raise NothingToJudge(f"{len(known)} finite values are too few to tell a trend from noise")
    return known


def _more(seen: Sequence[Symptom]) -> list[str]:
    """What a recorded run would show in addition, by what was seen."""
    lines = [
        "A curve shows that something is wrong, not why. A recording has what separates the causes: "
        "gradients, weights and updates of every layer, learning rates, batches, the order of calls "
        "with their lines. Record one: sawbones run train.py, or let it be explained: sawbones "
        "diagnose train.py"
    ]
    by_name = {watched.symptom: watched for watched in all_symptoms()}
    for symptom in seen:
        causes = by_name[symptom.symptom].causes
        lines.append(
            f"{symptom.symptom} may come from {', '.join(causes[:6])}. More: sawbones help "
            f"{symptom.symptom}"
        )
    return lines
