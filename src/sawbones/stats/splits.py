"""Which samples a run was trained on and which it was evaluated on, by fingerprint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sawbones.schema import Batch, Run
from sawbones.stats.overlaps import WHOLE, repeat_share, shared_of
from sawbones.stats.resuming import resumes

MIN_NUMBERS = 3  # real numbers per sample, so that equal ones are no chance
BY_CHANCE = 0.01  # trained samples that may equal an evaluated one without being its copy


@dataclass(frozen=True)
class Split:
    """One part of a run in which one model was trained: later parts (folds, fine-tuning) start
    over; one that goes on from a checkpoint of an earlier part was trained on its samples, too.
    """

    trained: tuple[Batch, ...]
    evaluated: tuple[Batch, ...]

    @cached_property
    def trained_on(self) -> set[int]:
        """Without samples that are never evaluated again once they were trained on: new ones are
        predicted first and become history afterwards.
        """
        first: dict[int, int] = {}
        for batch in self.trained:
            for f in batch.fingerprints:
                first[f] = min(batch.step, first.get(f, batch.step))
        last: dict[int, int] = {}
        for batch in self.evaluated:
            for f in batch.fingerprints:
                last[f] = max(batch.step, last.get(f, batch.step))
        return {f for f, step in first.items() if last.get(f, step + 1) > step}

    @property
    def trained_sources(self) -> set[str]:
        return {batch.source for batch in self.trained}

    def first_round(self) -> list[int]:
        """Fingerprints of training before any sample has to come again: of the first epoch of each
        loader; without one, of half as many samples as there are. A loader that is built anew for
        every epoch is the same one again.
        """
        by_source: dict[str, list[int]] = {}
        for batch in self.trained:
            if batch.epoch == 0:
                by_source.setdefault(batch.source, []).extend(batch.fingerprints)
        if prints := by_source.get("model"):
            by_source["model"] = prints[: max(1, len(set(prints)) // 2)]
        found: list[int] = []
        for prints in by_source.values():
            known, total = shared_of(prints, set(found))
            if known < WHOLE * total or not total:
                found += prints
        return found

    def sources(self) -> dict[str, list[Batch]]:
        found: dict[str, list[Batch]] = {}
        for batch in self.evaluated:
            if batch.fingerprints:
                found.setdefault(batch.source, []).append(batch)
        return found


def splits(run: Run) -> list[Split]:
    trained, evaluated = told_apart(run)
    trained = [b for b in trained if not _is_computed(b)]
    found = []
    for first, last in stretches(run):
        began = _began(run, first)
        part = Split(
            tuple(b for b in trained if any(a <= b.step <= z for a, z in (*began, (first, last)))),
            tuple(b for b in evaluated if first < b.step <= last + 1),
        )
        if part.trained and part.evaluated:
            found.append(part)
    return found


def _is_computed(batch: Batch) -> bool:
    """Its rows come out of another part of what is being trained: they are no records."""
    return any(tensor.get("from_graph") for tensor in batch.tensors)


def are_picked(run: Run, part: Split) -> bool:
    """Whether every call is given the same rows, as the nodes of one graph, and the loss is about
    some of them: which ones are trained on and which are scored is decided behind the model.
    """
    given = {frozenset(b.fingerprints) for b in (*part.trained, *part.evaluated)}
    if len(given) != 1:
        return False
    asked = [c.target.shape for d in run.deep for c in d.losses if c.target and c.target.shape]
    return bool(asked) and all(shape[0] < len(part.trained[0].fingerprints) for shape in asked)


def _began(run: Run, first: int) -> list[tuple[int, int]]:
    """Steps of earlier stretches that the training from this one on continues: it was given their
    weights and the state of their optimizer back. A fold that starts over gets neither, or both
    from before the first step.
    """
    found: list[tuple[int, int]] = []
    for resume in sorted(resumes(run), key=lambda r: -r.first_step):
        given_back = any(
            r.kind == "optimizer" and not r.empty and resume.load.step == r.step
            for r in run.restored or ()
        )
        if resume.first_step == first and resume.save is not None and given_back:
            before = [a for a, _ in stretches(run) if a < min(first, resume.save.step)]
            if before:
                found.append((before[-1], resume.save.step - 1))
                first = before[-1]
    return found


def told_apart(run: Run) -> tuple[list[Batch], list[Batch]]:
    """(trained on, evaluated).

    The phase of a batch is a guess where a loader fetches one ahead, or where a teacher without
    gradients sees it first. A backward pass belongs to the last batch fetched before it, and to
    those of loaders that are mostly read that way. A loader that feeds nearly all backward passes,
    and gave no more batches than there were of them, gave none to anything else. A run that was
    stopped in the middle of a step has one batch more whose backward pass never came.
    """
    backwards = {(e.step, e.microstep) for e in run.of_kind("backward")}
    last = {(b.step, b.microstep): i for i, b in enumerate(run.batches)}
    by_source: dict[str, list[bool]] = {}
    for i, batch in enumerate(run.batches):
        key = (batch.step, batch.microstep)
        by_source.setdefault(batch.source, []).append(key in backwards and last[key] == i)
    mostly = {source for source, ends in by_source.items() if sum(ends) >= 0.5 * len(ends)}
    steadily = {
        source for source, ends in by_source.items() if sum(ends) >= 0.8 * max(len(backwards), 1)
    }
    spent = {source for source in steadily if len(by_source[source]) <= len(backwards)}
    trained: list[Batch] = []
    evaluated: list[Batch] = []
    for i, batch in enumerate(run.batches):
        key = (batch.step, batch.microstep)
        if i == len(run.batches) - 1 and run.ending.kind != "finished" and batch.source in mostly:
            is_trained = True  # whatever the forward pass before it was for
        elif batch.source in spent:
            is_trained = True
        elif batch.step >= run.events_in_full:
            is_trained = batch.phase == "train"  # later events are thinned out
        elif batch.phase == "train":
            is_trained = key in backwards and (last[key] == i or batch.source in mostly)
        else:
            is_trained = key in backwards and last[key] == i and batch.source in steadily
        (trained if is_trained else evaluated).append(batch)
    return trained, evaluated


def stretches(run: Run) -> list[tuple[int, int]]:
    """Ranges of steps of optimizers that take turns in time; those that step side by side share
    one.
    """
    steps, optimizers = run.steps.get("step"), run.steps.get("optimizer")
    if steps is None or optimizers is None or not len(steps):
        return [(0, run.num_steps)]
    ranges = sorted(
        (int(steps[optimizers == o].min()), int(steps[optimizers == o].max()))
        for o in set(optimizers.tolist())
    )
    merged = [ranges[0]]
    for first, last in ranges[1:]:
        if first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def shared(batches: Iterable[Batch], trained_on: set[int]) -> tuple[int, int]:
    """(samples that were trained on, samples), each distinct sample once."""
    return shared_of((f for batch in batches for f in batch.fingerprints), trained_on)


def repeats(batches: Iterable[Batch]) -> float:
    """Share of samples seen before within one epoch of one loader."""
    by_epoch: dict[tuple[str, int], list[int]] = {}
    for batch in batches:
        by_epoch.setdefault((batch.source, batch.epoch), []).extend(batch.fingerprints)
    return max((repeat_share(prints) for prints in by_epoch.values()), default=0.0)


def by_width(batches: Iterable[Batch]) -> tuple[bool, int]:
    """Whether the first tensor holds real numbers, and how many values one sample has."""
    for batch in batches:
        for tensor in batch.tensors:
            shape: list[int] = list(tensor.get("shape") or ())
            if shape:
                size = 1
                for n in shape[1:]:
                    size *= n
                return str(tensor.get("dtype", "")).startswith(("float", "bfloat", "double")), size
    return False, 0


def row_bits(batches: Iterable[Batch]) -> tuple[float, int] | None:
    """How seldom two samples would be equal by chance, as a power of one half, if their values were
    independent: an upper bound; and how many values that are. None where no values were read.
    """
    for batch in batches:
        rows = next((t["shape"][0] for t in batch.tensors if t.get("shape")), 0)
        read = [
            (int(np.prod(t["shape"][1:])), float(t["bits"]))
            for t in batch.tensors
            if "bits" in t and t["shape"][:1] == [rows]
        ]
        if read:
            return sum(width * bits for width, bits in read), sum(width for width, _ in read)
    return None


def has_telling_rows(batches: Sequence[Batch], num_trained: int, met_again: float = 1.0) -> bool:
    """Samples of real numbers that hardly equal one of so many others by chance. Whether a tensor
    is of a real dtype says nothing of that: one-hot codes and boards are, too. Values of two kinds
    are drawings: a few numbers say where all the lines are, however many dots they have. Where
    such rows stand among others they may be the share of the rows that was `met_again`.
    """
    real, width = by_width(batches)
    needed = math.log2(max(num_trained, 1) / BY_CHANCE)
    bits, values = row_bits(batches) or (math.inf, 0)
    telling = real and width >= MIN_NUMBERS and bits >= needed and bits > values
    return telling and _drawings(batches) < met_again / 2


def _drawings(batches: Iterable[Batch]) -> float:
    """Share of the samples whose widest tensor holds values of two kinds only."""
    for batch in batches:
        wide = [t for t in batch.tensors if "two_kinds" in t]
        if wide:
            return float(max(wide, key=lambda t: np.prod(t["shape"][1:]))["two_kinds"])
    return 0.0


def label_counts(batches: Iterable[Batch]) -> dict[str, int]:
    """Classes of the one tensor of whole numbers with one value per sample."""
    total: dict[str, int] = {}
    for batch in batches:
        rows: list[Mapping[str, Any]] = [t for t in batch.tensors if t.get("counts")]
        if len(rows) != 1:
            continue
        for value, count in rows[0]["counts"].items():
            total[value] = total.get(value, 0) + count
    return total


def differ_as_wholes(run: Run, total: int) -> bool:
    """A fingerprint sees some places of a wide row, and rows of mostly zeros share them. Where whole
    rows of as many samples were compared as well, and none was trained on, these are no copies.
    """
    passes = run.populations.passes
    compared = sum(p.rows for p in passes)
    return bool(passes) and compared >= total and not any(p.known for p in passes)
