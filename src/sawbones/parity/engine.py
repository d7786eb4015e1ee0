"""Two sides on golden rows -> a report: where they part first, by how much, and for how many rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sawbones.evidence import context, exact, finding
from sawbones.parity.apart import Apart, apart
from sawbones.parity.golden import Array, Golden
from sawbones.parity.sides import ANSWER, Side, Stage, as_side, stages_of
from sawbones.schema import Evidence, Finding, Fix, Report
from sawbones.schema.errors import SawbonesError

FAULT = "deployment.serving-parity"
TOLERANCE = 1e-4  # of the largest value: rounding of float32 through some hundred operations
KEPT = "the answers kept in the golden file"


@dataclass(frozen=True)
class Compared:
    report: Report
    answers: Array | None  # of the trained side


class _Raised(SawbonesError):
    """The code of a side raised."""


def compare(
    trained: Any,
    served: Any,
    golden: Golden,
    *,
    names: tuple[str, str] = ("trained", "served"),
    tolerance: float = TOLERANCE,
    batch: int | None = None,
) -> Compared:
    """`trained` None: the answers that the golden file holds. `batch`: rows in one call of the
    served side; the trained one gets all at once.
    """
    began = time.monotonic()
    inputs = list(golden.inputs.values())
    notes: tuple[str, ...] = ()
    try:
        ours = _asked(trained, names[0], inputs, golden.num_rows) if trained is not None else None
        theirs = _asked(served, names[1], inputs, batch or golden.num_rows)
    except _Raised as error:
        report = Report("crashed", names[1], 0, time.monotonic() - began, notes=(str(error),))
        return Compared(report, None)
    first = ours[1] if ours is not None else _kept(golden)
    found, notes = _judged(first, theirs[1], names, tolerance)
    sides = [side for side in (ours[0] if ours else None, theirs[0]) if side is not None]
    found = [_with_mode(f, sides) for f in found]
    verdict = "sick" if found else "healthy"
    seconds = round(time.monotonic() - began, 3)
    environment = {"rows": golden.num_rows, "tolerance": tolerance}
    report = Report(
        verdict, names[1], 0, seconds, tuple(found), environment=environment, notes=notes
    )
    return Compared(report, first[-1].value)


def _asked(thing: Any, name: str, inputs: Sequence[Array], batch: int) -> tuple[Side, list[Stage]]:
    try:
        side = as_side(thing, name)
        return side, stages_of(side, inputs, batch)
    except SawbonesError:
        raise
    except Exception as error:  # the user's own code
        said = str(error).split("\n")[0][:300]
        raise _Raised(f"{name} raised {type(error).__name__}: {said}") from error


def _kept(golden: Golden) -> list[Stage]:
    if golden.answers is None:
        raise SawbonesError(
            "the golden file holds no answers: name both sides, or keep the answers first with "
            "sawbones parity my.module:trained my.module:served --inputs rows.npz "
            "--write golden.npz"
        )
    return [Stage(ANSWER, golden.answers)]


def _judged(
    ours: list[Stage], theirs: list[Stage], names: tuple[str, str], tolerance: float
) -> tuple[list[Finding], tuple[str, ...]]:
    answer = apart(ours[-1].value, theirs[-1].value, tolerance)
    if answer is None:
        text = (
            f"{names[0]} answers with {_shape(ours[-1])}, {names[1]} with {_shape(theirs[-1])}: "
            "the answers have different shapes"
        )
        return [
            _found("The two sides answer in different shapes", (exact(text, 1),), theirs[-1])
        ], ()
    pairs = _aligned(ours, theirs)
    looked = f"{len(pairs)} steps and layers were compared" if len(pairs) > 1 else ""
    if not answer.rows:
        same = f"all {answer.of} rows get the same answer within {tolerance:g} of the largest value"
        return [], tuple(note for note in (same, looked) if note)
    evidence = [_reading(answer, names[1], tolerance)]
    parted = _first_parted(pairs, tolerance)
    if parted is not None:
        evidence += _parting(*parted)
    elif len(pairs) == 1:
        evidence.append(context("no step or layer before the answer is there on both sides"))
    site = parted[1] if parted is not None else theirs[-1]
    what = f"from {site.name} on" if site.name != ANSWER else "in their answers"
    return [_found(f"{names[1]} and {names[0]} part {what}", evidence, site)], (
        (looked,) if looked else ()
    )


def _found(title: str, evidence: Sequence[Evidence], stage: Stage) -> Finding:
    fix = Fix(
        "Serve what was trained: the same preparation, in one function with the statistics of "
        "training, and a copy that is compared on golden rows before it answers. Where the loss "
        "of precision is meant, say how much: --tolerance."
    )
    where = (stage.site,) if stage.site is not None else ()
    return replace(finding(title, where, evidence, fix), fault=FAULT)


def _reading(seen: Apart, name: str, tolerance: float) -> Evidence:
    text = (
        f"{seen.rows} of {seen.of} golden rows get another answer from {name} (largest difference "
        f"{seen.largest:.3g} of the largest value, {tolerance:g} allowed)"
    )
    if seen.other_class is not None:
        text += f"; {seen.other_class} of them another class"
    return exact(text, seen.largest, within=tolerance, signal="parity")


def _parting(before: Stage | None, stage: Stage, seen: Apart | None) -> list[Evidence]:
    told = f"{before.name} still agrees; " if before is not None else "nothing before it differs; "
    if seen is None:
        return [context(f"{told}{stage.name} has another shape on the served side")]
    text = f"{told}{stage.name} is the first to differ, by {seen.largest:.3g} of its largest value"
    found = [context(text, signal="parity", value=seen.largest, expected=0.0)]
    if seen.example is not None:
        row, ours, theirs = seen.example
        found.append(context(f"row {row}: {ours:.6g} when trained, {theirs:.6g} as served"))
    if seen.relation:
        found.append(context(seen.relation))
    return found


def _aligned(ours: list[Stage], theirs: list[Stage]) -> list[tuple[Stage, Stage]]:
    """By name, in the order of the trained side; by their place where the numbers agree."""
    named = {stage.name: stage for stage in theirs}
    pairs = [(stage, named[stage.name]) for stage in ours if stage.name in named]
    if len(pairs) == 1 and len(ours) == len(theirs):
        return list(zip(ours, theirs, strict=True))
    return pairs


def _first_parted(
    pairs: list[tuple[Stage, Stage]], tolerance: float
) -> tuple[Stage | None, Stage, Apart | None] | None:
    before: Stage | None = None
    for mine, other in pairs:
        seen = apart(mine.value, other.value, tolerance)
        if seen is None or seen.rows:
            return before, other, seen
        before = other
    return None


def _with_mode(found: Finding, sides: list[Side]) -> Finding:
    training = [side.name for side in sides if side.is_training]
    if not training:
        return found
    text = f"in training mode: {' and '.join(training)} (.eval() was not called)"
    return replace(found, evidence=(*found.evidence, context(text)))


def _shape(stage: Stage) -> str:
    return " x ".join(map(str, stage.value.shape))
