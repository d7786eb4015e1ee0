"""A new exercise on disk: made from a seed, run to see that its fault shows, and written with the
report of a colleague. Nothing in the folder names the answer.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from sawbones.fixing.source import Source
from sawbones.practise import answers, records
from sawbones.practise.colleague import report
from sawbones.practise.exercises import SCRIPT, Exercise, NoExercise, into_own, make
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import Measured, bench_for, hurts, measure, shows

TRIES = 6  # seeds: a fault may not show in one script and does in the next
APART = 100_003  # between the seeds that are tried for one


def begin(
    folder: Path, seed: int, level: int, layer: str | None, minutes: float
) -> tuple[Exercise, Path]:
    exercise, broken, good = given_out(seed, level, layer)
    record = records.Record(
        uuid.uuid4().hex[:12], exercise.seed, level, layer, minutes, time.time()
    )
    write(folder, exercise, broken, good, record)
    return exercise, folder


def given_out(
    seed: int, level: int, layer: str | None = None
) -> tuple[Exercise, Measured, Measured]:
    """The exercise of this seed, or of the first one after it whose fault shows; with what its two
    scripts did.
    """
    for exercise, seen in attempts(seed, level, layer):
        if seen is not None:
            return exercise, *seen
    raise NoExercise(f"none of {TRIES} scripts showed its fault; try another seed")


def attempts(
    seed: int, level: int, layer: str | None = None
) -> Iterator[tuple[Exercise, tuple[Measured, Measured] | None]]:
    """The exercise of this seed and of those after it, each with what its two scripts did."""
    for attempt in range(TRIES):
        exercise = make(seed + attempt * APART, level, layer)
        yield exercise, tried(exercise)


def begin_into(
    script: Path, folder: Path, seed: int, level: int, layer: str | None, minutes: float
) -> tuple[Exercise, Path]:
    """In a copy of the user's own folder; the script itself stays as it is."""
    source = Source.read(script, script.name)
    fitting = into_own(source, seed, level, layer)
    if not fitting:
        raise NoExercise(
            f"nothing of level {level} can be put into {script}. Another level or layer: --level, "
            "--layer"
        )
    for exercise in fitting[: 2 * TRIES]:
        seen = tried(exercise, script.parent)
        if seen is None:
            continue
        record = records.Record(
            uuid.uuid4().hex[:12],
            exercise.seed,
            level,
            layer,
            minutes,
            time.time(),
            script=script.name,
            healthy=source.text,
            faults=exercise.faults,
        )
        _copy_beside(script.parent, folder)
        records.keep(record, exercise.broken.text)
        write(folder, exercise, *seen, record)
        return exercise, folder
    raise NoExercise(f"no fault that was put into {script} shows; try another seed or level")


def tried(exercise: Exercise, beside: Path | None = None) -> tuple[Measured, Measured] | None:
    """The broken run and the healthy one; None where nothing shows, or hurts,
    although there is a fault.
    """
    with tempfile.TemporaryDirectory(prefix="practise-") as scratch:
        root = beside or Path(scratch)
        if beside is None:
            (root / exercise.healthy.file).write_bytes(exercise.healthy.raw)
        with bench_for(root, exercise.healthy.file) as bench:
            good = measure(bench, exercise.healthy)
            if not exercise.faults:
                return good, good
            broken = measure(bench, exercise.broken)
            if not _by_other_numbers(exercise):
                return (broken, good) if hurts(broken, good) else None
            if shows(broken, good):
                return broken, good
            again = measure(bench, exercise.broken)  # two runs of one script that differ
            return (broken, good) if shows(again, broken) else None


def _by_other_numbers(exercise: Exercise) -> bool:
    """One of its faults shows in numbers that may be better than those of the healthy script."""
    known = injectors()
    return any(known[name].may_look_better for name in exercise.faults)


def _copy_beside(root: Path, folder: Path) -> None:
    """Modules and small files that the script may read."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in root.iterdir():
        if path.is_file() and path.stat().st_size < 4 << 20 and not path.name.startswith("."):
            shutil.copy2(path, folder / path.name)


def write(
    folder: Path, exercise: Exercise, broken: Measured, good: Measured, record: records.Record
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / exercise.broken.file).write_bytes(exercise.broken.raw)
    (folder / "REPORT.md").write_text(report(exercise, broken, good), encoding="utf-8")
    template = answers.TEMPLATE.replace(SCRIPT, exercise.broken.file)
    (folder / answers.FILE).write_text(template, encoding="utf-8")
    (folder / records.MARK).write_text(record.id + "\n", encoding="utf-8")
    if not record.healthy:
        records.keep(record)
