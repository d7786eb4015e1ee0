"""A pass with its errors row by row: wrong or right for classes, the distance for quantities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.held import LEAST_ROWS, Held
from sawbones.observe.populations.log import Pass, Values, cut
from sawbones.schema import Site
from sawbones.schema.populations import Likeness

Errors = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    number: int
    lines: tuple[Site, ...]
    module: tuple[int, int]  # and its state
    likeness: Likeness | None
    is_training: bool
    rows: Values
    hashes: tuple[int, ...]
    answers: Values
    wanted: Values | None
    kind: str  # "classes", "quantity", or "" where it is not known what was asked for
    errors: Errors | None
    known: float  # share of the rows that were trained on
    new_score: float | None = None  # over the rows that were not trained on
    held: tuple[Held, ...] = ()  # columns of the script's own, one value for each row
    is_new: npt.NDArray[np.bool_] | None = None  # row by row: not trained on

    @property
    def given(self) -> Values:
        """The class that was chosen, or the quantity that was answered."""
        one = self.answers[:, 0]
        chosen: Values = (one > cut(one)).astype(np.float32) if self.kind == "classes" else one
        if self.answers.shape[1] > 1:
            chosen = self.answers.argmax(1).astype(np.float32)
        return chosen

    @property
    def score(self) -> float:
        """Share of right answers, or the mean distance."""
        if self.errors is None:
            return float("nan")
        return float(1 - self.errors.mean() if self.kind == "classes" else self.errors.mean())


def judged(number: int, here: Pass, trained: set[int]) -> Judged | None:
    """None for passes that are too small, or whose rows differ in width."""
    widths = {b.shape[1] for b in here.batches}
    answers = here.answers
    if len(here.hashes) < LEAST_ROWS or len(widths) != 1 or answers is None:
        return None
    wanted = here.wanted
    kind = kind_of(answers, wanted)
    errors: Errors | None = None
    if kind == "classes" and wanted is not None:
        one = answers[:, 0]
        chosen = answers.argmax(1) if answers.shape[1] > 1 else one > cut(one)
        errors = (chosen != wanted).astype(np.float64)
    elif kind == "quantity" and wanted is not None:
        errors = np.abs(answers[:, 0].astype(np.float64) - wanted)
    is_new = np.array([h not in trained for h in here.hashes])
    known = float(1 - is_new.mean())
    new_score = None
    if errors is not None and is_new.any():
        mean = float(errors[is_new].mean())
        new_score = 1 - mean if kind == "classes" else mean
    return Judged(
        number,
        here.lines,
        (here.module, here.state),
        here.likeness,
        here.is_training,
        here.rows,
        tuple(here.hashes),
        answers,
        wanted,
        kind,
        errors,
        known,
        new_score,
        tuple(h for h in here.held if len(h.codes) == len(here.hashes)),
        is_new,
    )


def kind_of(answers: Values, wanted: Values | None) -> str:
    if wanted is None or len(wanted) != len(answers) or not np.all(np.isfinite(wanted)):
        return ""
    whole = bool(np.all(wanted == np.round(wanted)) and wanted.min() >= 0)
    if answers.shape[1] > 1:
        return "classes" if whole and wanted.max() < answers.shape[1] else ""
    if whole and wanted.max() <= 1:
        return "classes"
    return "quantity"
