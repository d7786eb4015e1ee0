"""The step protocol: events of a run grouped by the optimizer step that they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.schema import NOT_MEASURED, Event, Run

STEP_KINDS = ("step", "manual_step")


@dataclass(frozen=True)
class Turn:
    """What the loop did since the optimizer step before, and the step itself."""

    step: int
    events: tuple[Event, ...]
    taken: Event
    scaler_step: Event | None  # when the step went through a scaler

    def of(self, *kinds: str) -> tuple[Event, ...]:
        return tuple(e for e in self.events if e.kind in kinds)

    @property
    def backwards(self) -> tuple[Event, ...]:
        return self.of("backward")

    @property
    def skipped(self) -> bool:
        return bool(self.taken.data.get("skipped"))

    @property
    def closure(self) -> bool:
        return bool(self.taken.data.get("closure"))

    @property
    def optimizer(self) -> int:
        return int(self.taken.data.get("optimizer", -1))


def turns(run: Run) -> list[Turn]:
    """In order. What follows a step under the same number is the observer's own work on the model
    and is left out.
    """
    by_step: dict[int, list[Event]] = {}
    for event in run.events:
        by_step.setdefault(event.step, []).append(event)
    found = []
    for step, events in sorted(by_step.items()):
        taken = next((e for e in events if e.kind in STEP_KINDS), None)
        if taken is None:
            continue
        through = next((e for e in events if e.kind == "scaler_step"), None)
        before = tuple(e for e in events if e.seq < taken.seq and e.kind not in STEP_KINDS)
        found.append(Turn(step, before, taken, through))
    return found


def unfinished(run: Run) -> tuple[Event, ...]:
    """Events after the last optimizer step: what was begun and never stepped."""
    last = max((e.step for e in run.events if e.kind in STEP_KINDS), default=-1)
    return tuple(e for e in run.events if e.step > last)


def same_place(events: Iterable[Event]) -> bool:
    places = {(e.site.file, e.site.line) if e.site is not None else None for e in events}
    return len(places) == 1 and None not in places


def measured(run: Run, statistic: str, step: int) -> npt.NDArray[np.float64]:
    """The values of one statistic at one step for all tensors; NaN where nothing was measured."""
    table = run.statistics.get(statistic)
    rows = np.flatnonzero(run.tensor_steps == step)
    if table is None or not len(rows):
        return np.full(len(run.tensors), np.nan)
    values = np.full(table.shape[1], np.nan)
    for row in rows:  # several optimizers may share a step number
        line = table[row].astype(np.float64)
        values = np.where(line == NOT_MEASURED, values, line)
    return values


def update_ratios(run: Run) -> npt.NDArray[np.float64]:
    """Update norm over parameter norm, one value per step, NaN where it was not measured."""
    update, size = run.steps.get("update_norm"), run.steps.get("param_norm")
    if update is None or size is None:
        return np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = update / size
    return np.where(np.isfinite(ratio) & (ratio >= 0), ratio, np.nan)


def share_the_run(run: Run) -> bool:
    """Several optimizers take turns, as in a game; one after the other is a restart."""
    order = run.steps.get("optimizer", np.zeros(0))
    turns_taken = int(np.count_nonzero(np.diff(order)))
    return turns_taken > max(len(set(order.tolist())) - 1, 0)


def epoch_starts(run: Run) -> list[int]:
    """The first step of each epoch of the training data, as far as batches say so. A long run keeps some
    of its batches only; where they lie as the length of their loader has it, that says it of all.
    """
    trained = [batch for batch in run.batches if batch.phase == "train"]
    lengths = {loader.source: loader.length for loader in run.loaders}
    length = lengths.get(trained[0].source) if trained else None
    if length and all(batch.epoch == batch.step // length for batch in trained):
        return list(range(0, run.num_steps, length))
    starts: dict[int, int] = {}
    for batch in trained:
        starts.setdefault(batch.epoch, batch.step)
    return sorted(set(starts.values()))
