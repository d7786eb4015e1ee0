"""Where a run goes on from a checkpoint, and what it got back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sawbones.schema import Event, Optimizer, Run

SAME = 8  # steps whose LRs are the first ones again, bit for bit


@dataclass(frozen=True)
class Resume:
    save: Event | None
    load: Event
    optimizer: int  # index of the optimizer that steps after it
    first_step: int
    num_before: int  # optimizer steps before it, in this run
    counted: (
        bool  # the checkpoint holds more than weights: a counter, or the state of something else
    )


def resumes(run: Run) -> Iterator[Resume]:
    """Loads of a model after training, by this run or by an earlier one, with training after
    them.
    """
    steps = [e for e in run.of_kind("step") if not e.data.get("skipped")]
    for load in run.of_kind("load"):
        kinds = set(load.data.get("kinds") or ())
        after = next((e for e in steps if e.seq > load.seq), None)
        if "model" not in kinds or after is None:
            continue
        save = next(
            (
                e
                for e in reversed(run.of_kind("save"))
                if e.seq < load.seq and "model" in (e.data.get("kinds") or ())
            ),
            None,
        )
        counted = bool(kinds & {"step", "optimizer", "scheduler", "rng", "scaler"})
        index = int(after.data.get("optimizer", -1))
        num_before = sum(e.seq < load.seq for e in steps)
        resume = Resume(save, load, index, after.step, num_before, counted)
        if counted or (save is not None and num_before and _goes_on_alike(run, resume)):
            yield resume


def _goes_on_alike(run: Run, resume: Resume) -> bool:
    """Weights alone: a resume only when the same data and the same first LR follow; else it is
    fine-tuning.
    """
    new = next((o for o in run.optimizers if o.index == resume.optimizer), None)
    old = [
        o
        for o in run.optimizers
        if o.index < resume.optimizer and new is not None and o.cls == new.cls
    ]
    if new is None or not old or old[-1].defaults.get("lr") != new.defaults.get("lr"):
        return False
    before = {
        f
        for b in run.batches
        if b.step < resume.first_step and b.phase == "train"
        for f in b.fingerprints
    }
    after = {
        f
        for b in run.batches
        if b.step >= resume.first_step and b.phase == "train"
        for f in b.fingerprints
    }
    return bool(after) and len(before & after) >= 0.5 * len(after)


def is_stateful(optimizer: Optimizer) -> bool:
    defaults = optimizer.defaults
    return (
        "betas" in defaults
        or "rho" in defaults
        or "alpha" in defaults
        or bool(defaults.get("momentum"))
    )


def not_restored(run: Run, resume: Resume) -> Optimizer | None:
    """The optimizer that goes on empty although it keeps state."""
    optimizer = next((o for o in run.optimizers if o.index == resume.optimizer), None)
    if optimizer is None or not is_stateful(optimizer):
        return None
    own = [e for e in run.of_kind("step") if e.data.get("optimizer") == resume.optimizer]
    if any(e.seq < resume.load.seq for e in own):
        return None  # it lives on in memory
    restored = [
        r for r in run.restored or () if r.kind == "optimizer" and r.index == resume.optimizer
    ]
    # A framework that moves a fresh optimizer hands its empty state back to it; an empty state out
    # of the checkpoint is its state.
    held = "optimizer" in (resume.load.data.get("kinds") or ())
    restored = [r for r in restored if not r.empty or (held and r.seq >= resume.load.seq)]
    return None if any(r.seq <= own[0].seq for r in restored) else optimizer


def lr_jump(run: Run, resume: Resume) -> tuple[float, float] | None:
    """LR before and after, when a schedule that was stepped starts over and was not restored."""
    by_hand = _first_values_again(run, resume)
    if by_hand is not None:
        return by_hand
    stepped = [e for e in run.of_kind("schedule") if not e.data.get("initial")]
    before = [e for e in stepped if e.seq < resume.load.seq]
    after = [e for e in stepped if e.seq > resume.load.seq]
    if (
        not before
        or not after
        or any(r.kind == "scheduler" and r.seq >= resume.load.seq for r in run.restored or ())
    ):
        return None
    lrs, steps = run.steps["lr"], run.steps["step"]
    old, new = lrs[steps < resume.first_step], lrs[steps >= resume.first_step]
    if (
        len(old) < 3
        or not len(new)
        or not np.all(np.isfinite([*old[-3:], new[0]]))
        or old[-1] <= 0
        or new[0] <= 0
    ):
        return None
    usual = np.abs(np.diff(np.log(np.maximum(old, 1e-12))))
    # A restored optimizer brings its old LR along for one step, until the fresh schedule writes its
    # own.
    found = float(
        max((lr for lr in new[:2] if lr > 0), key=lambda lr: abs(float(np.log(lr / old[-1]))))
    )
    jump = abs(float(np.log(found / old[-1])))
    if jump < 0.05 or jump < 3 * float(np.median(usual)):
        return None
    return float(old[-1]), found


def _first_values_again(run: Run, resume: Resume) -> tuple[float, float] | None:
    """An LR that the script computes from a count of steps: after the resume it runs through its
    very first values again.
    """
    lrs, steps = run.steps["lr"], run.steps["step"]
    old, new = lrs[steps < resume.first_step], lrs[steps >= resume.first_step]
    if not resume.counted or run.of_kind("schedule") or min(len(old), len(new)) < SAME:
        return None
    first, again = old[:SAME], new[:SAME]
    if (
        not np.all(np.isfinite(first))
        or len(set(first.tolist())) < 4
        or not np.array_equal(first, again)
    ):
        return None
    jump = abs(float(np.log(max(again[0], 1e-12) / max(old[-1], 1e-12))))
    return (float(old[-1]), float(again[0])) if jump >= 0.05 else None
