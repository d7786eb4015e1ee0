"""The same again: two runs from one seed, and a run that is stopped and resumed against one that is
not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sawbones.schema import Run
from sawbones.store import read_run
from sawbones.testing.catalogue import free_of
from sawbones.testing.observing import observe
from sawbones.testing.wording import broken, steps_taken
from sawbones.trials.battery.same_seed_twice import told
from sawbones.trials.good_run import differences, first_loss


def assert_deterministic(train: Callable[[], Sequence[float]] | Run) -> None:
    """Two calls give the same losses bit for bit: `train()` seeds, trains for some steps and
    returns them.

    Of a run: observe(..., twice=True) has compared two runs of a script, batches and losses in
    order.
    """
    if isinstance(train, Run):
        steps_taken(train)
        twin = train.twin_run
        if twin is None:
            raise ValueError("this run was made once: observe(..., twice=True) makes the second")
        if twin.differs is not None:
            raise broken(told(twin.differs), f"two equal runs over {twin.steps} steps")
        return
    first, second = list(train()), list(train())
    if len(first) != len(second):
        raise broken(
            f"the first run gives {len(first)} losses, the second {len(second)}", "as many"
        )
    _equal(first, second, "two runs from one seed: ")


def assert_same_losses(
    recorded: str | Path | Run,
    run: Run | None = None,
    *,
    steps: int | None = None,
    root: str | Path | None = None,
) -> None:
    """For a refactoring: the losses are those of an earlier recording, bit for bit.

    `recorded` is a run folder (sawbones run --out FOLDER train.py). Its script runs again, with the
    same arguments, in `root` (the current folder by default), for `steps` steps or as many as were
    recorded; or `run` is what observe gave. The message names everything that differs, first
    things first.
    """
    good = recorded if isinstance(recorded, Run) else read_run(recorded)
    steps_taken(good)
    if run is None:
        limit = min(steps or good.num_steps, good.num_steps)
        run = observe(good.script, *good.argv, steps=limit, root=root)
    steps_taken(run)
    wanted = min(steps or good.num_steps, good.num_steps)
    found = differences(good, run)
    loss = first_loss(found)
    if loss is not None and (loss.step or 0) < wanted:
        before = "; ".join(d.text for d in found if d is not loss)
        raise broken(
            loss.text + (f". What else differs: {before}" if before else ""),
            "the recorded losses, bit for bit",
            loss.step,
            loss.site,
        )
    if run.num_steps < wanted:
        raise broken(f"{run.num_steps} steps were taken", f"{wanted}, as in the recording")


def _equal(goal: Sequence[float], found: Sequence[float], what: str, offset: int = 0) -> None:
    for step, (a, b) in enumerate(zip(goal, found, strict=True)):
        if float(a) != float(b) and not (math.isnan(a) and math.isnan(b)):
            raise broken(
                f"{what}loss {float(b):.9g} at step {step + offset}", f"{float(a):.9g}, bit for bit"
            )


def assert_resumes_exactly(
    build: Callable[[], Any] | Run,
    train: Callable[[Any, int, int], Sequence[float]] | None = None,
    save: Callable[[Any], Any] | None = None,
    load: Callable[[Any, Any], None] | None = None,
    *,
    steps: int = 8,
    at: int = 4,
) -> None:
    """N steps equal k steps, save, a fresh start, load, and the other N - k: every loss, bit for
    bit.

    build() makes the state of a run; train(state, first, last) takes these steps and returns their
    losses; save(state) gives a checkpoint and load(state, checkpoint) restores it. Of a run that
    saves and loads: optimizer and LR go on where they were.
    """
    if isinstance(build, Run):
        free_of(build, "loop.resume-incomplete")
        return
    if train is None or save is None or load is None:
        raise TypeError("assert_resumes_exactly needs build, train, save and load")
    whole = list(train(build(), 0, steps))
    first = build()
    begun = list(train(first, 0, at))
    _equal(whole[:at], begun, "the runs differ before the save: ")
    checkpoint = save(first)
    second = build()
    load(second, checkpoint)
    _equal(whole[at:], list(train(second, at, steps)), f"resumed after step {at}: ", at)
