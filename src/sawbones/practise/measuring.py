"""A script -> what it does: its log, its losses, its symptoms. Every number of an exercise and of its
grading comes from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sawbones import symptoms
from sawbones.fixing.source import Source
from sawbones.observe.options import Options
from sawbones.schema import Run, Symptom
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.series import end_level, ends_lower
from sawbones.trials.bench import Bench, DiedAtOnce, Patient

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\bnan\b|\binf\b", re.IGNORECASE)
SECONDS = 1800.0  # for all runs of one grading together: on a busy machine each takes its time
_SHOWN = 0.05  # a last line of the log that differs by so much, relative, shows something


@dataclass(frozen=True)
class Measured:
    run: Run | None  # None: it died before there was anything to record
    log: tuple[str, ...]

    @property
    def crashed(self) -> bool:
        return self.run is None or self.run.ending.kind == "exception"

    @property
    def error(self) -> str:
        """The last line of the traceback."""
        return (
            next((line for line in reversed(self.log) if line.strip()), "") if self.crashed else ""
        )

    @property
    def symptoms(self) -> frozenset[str]:
        return frozenset(symptom.symptom for symptom in self._seen)

    @property
    def ill(self) -> frozenset[str]:
        return frozenset(symptom.symptom for symptom in self._seen if symptom.cls == "ill")

    @property
    def _seen(self) -> tuple[Symptom, ...]:
        return tuple(symptoms.read(self.run).symptoms) if self.run is not None else ()

    @property
    def last_numbers(self) -> list[float]:
        """Of the last line that holds any."""
        found = ([float(n) for n in NUMBER.findall(line)] for line in reversed(self.log))
        return next((numbers for numbers in found if numbers), [])


@contextmanager
def bench_for(folder: Path, script: str) -> Iterator[Bench]:
    with Bench(Patient(script, (), folder), SECONDS) as bench:
        yield bench


def measure(bench: Bench, source: Source, options: Options | None = None) -> Measured:
    bench.changed_files = {source.file: source.raw}
    try:
        run = bench.execute(options or Options())
    except DiedAtOnce as died:
        return Measured(None, tuple(str(died).splitlines()))
    finally:
        bench.changed_files = {}
    return Measured(run, tuple(bench.log_tail.splitlines()))


def shows(broken: Measured, good: Measured) -> bool:
    """Something is there to be seen: an error, a symptom, a warning, or other numbers at the end."""
    if broken.crashed != good.crashed or broken.symptoms - good.symptoms:
        return True
    if any("Warning" in line for line in broken.log) and not any("Warning" in x for x in good.log):
        return True
    pairs = list(zip(broken.last_numbers, good.last_numbers, strict=False))
    return any(_apart(a, b) for a, b in pairs)


def hurts(broken: Measured, good: Measured) -> bool:
    """Beyond what is to be seen: an error, an ill symptom, numbers that are no longer finite, or an
    end that is worse, of the training loss or of an evaluation.
    """
    if broken.crashed != good.crashed or broken.ill - good.ill:
        return True
    if any(not math.isfinite(number) for number in broken.last_numbers):
        return True
    return any(_worse(broken, good, curve) for curve in (_training, _evaluation))


def _training(run: Run) -> np.ndarray:
    return np.asarray(run.losses, np.float64)


def _evaluation(run: Run) -> np.ndarray:
    return np.asarray(validation_curve(run)[1], np.float64)


def _worse(broken: Measured, good: Measured, curve: Callable[[Run], np.ndarray]) -> bool:
    if broken.run is None or good.run is None:
        return False
    ill, well = curve(broken.run), curve(good.run)
    if not len(ill) or not len(well):
        return False
    return ends_lower(end_level(well), end_level(ill), float(well[0]), _SHOWN)


def _apart(one: float, other: float) -> bool:
    if math.isfinite(one) != math.isfinite(other):
        return True
    return abs(one - other) > _SHOWN * max(abs(one), abs(other))
