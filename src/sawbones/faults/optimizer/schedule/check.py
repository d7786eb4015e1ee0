"""A learning-rate schedule that does not fit the run

## What it sees
The LR of every step, whoever sets it, against the length of a run that came to its own end, and
each scheduler's planned length against how often it moved. Wrong unit: planned in steps and moved
per epoch, or the other way round. Over too early: the LR is under a ten-thousandth of its peak for
a third of the run. Endless warm-up: the LR rises in a straight line to the very last step, or by
equal amounts whenever its scheduler moves, once per epoch, and ends under 0.6 of the LR that the
optimizer was built with. Wrong way: ReduceLROnPlateau waits for a value to rise that falls with the
training loss, and lowers the LR three times or more. Past its end: a cosine that moved well beyond
T_max climbs again, or a schedule of fixed length refuses to go on.

## Why it matters
Most of the run trains with a rate that nobody meant.

## Looks like
The loss freezes early, or never gets going, although the peak LR is right.

## Example
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=num_epochs * len(loader))
    for epoch in range(num_epochs):
        train_one_epoch()
        scheduler.step()

## Use instead
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=num_epochs)
    for epoch in range(num_epochs):
        train_one_epoch()
        scheduler.step()

## Confirm it
The LR curve against the steps really taken is the proof.

## False alarms
Runs cut short by a budget, an error or early stopping are not judged by their planned length. Warm
restarts and cycles rise on purpose, an LR finder rises exponentially, a warm-up that reaches its
plateau does not rise at the end.

## References
OneCycleLR and the schedules of Transformers count optimizer steps, CosineAnnealingLR in most
tutorials counts epochs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from sawbones.schema import Event, Evidence, Finding, Fix, Run, Site
from sawbones.stats.protocol import numbers_equal_to, sites_in, sites_of
from sawbones.stats.series import fell

NEEDS = ("steps",)
EXPLAINS = ("optimizer.lr-too-low", "evaluation.collapsed-prediction", "model.frozen-params")
EXPERIMENT = None
RAN_OUT = re.compile(r"Tried to step (\d+) times. The specified number of total steps is (\d+)")
PLANNED = ("total_steps", "T_max", "total_iters")


def check(run: Run) -> Iterator[Finding]:
    ran_out = _ran_out(run)
    if ran_out is not None:
        yield ran_out
    if run.ending.kind != "finished" or run.num_steps < 10:
        return
    made = [e for e in run.of_kind("schedule") if e.data.get("initial")]
    moves = [e for e in run.of_kind("schedule") if not e.data.get("initial")]
    for scheduler in made:
        mine = [e for e in moves if e.data.get("scheduler") == scheduler.data.get("scheduler")]
        found = (
            _wrong_unit(run, scheduler, mine)
            or _warm_up_by_epoch(run, scheduler, mine)
            or _wrong_way(run, scheduler, mine)
        )
        if found is not None:
            yield found
            return
    places = sites_of(*made[:1], *moves[:1]) or sites_in(run, ("rate",))[:3]
    for index in sorted(set(run.steps["optimizer"].tolist())):
        rates = run.steps["lr"][run.steps["optimizer"] == index]
        if len(rates) >= 10 and np.all(np.isfinite(rates)) and float(np.ptp(rates)) > 0:
            found = _by_curve(rates, places, _warm_up_written(run, int(index), rates))
            if found is not None:
                yield found
                return


def _finding(
    title: str,
    text: str,
    places: tuple[Site, ...],
    value: float,
    expected: float,
    advice: str,
    sure: float,
) -> Finding:
    status = "proven" if sure >= 0.9 else "likely"
    evidence = (Evidence(text, "schedule", (), value, expected),)
    return Finding("optimizer.schedule", status, sure, title, places, evidence, Fix(advice))


def _ran_out(run: Run) -> Finding | None:
    """A scheduler with a fixed length refuses to go on."""
    found = RAN_OUT.search(run.ending.message or "") if run.ending.kind == "exception" else None
    if found is None:
        return None
    made = [
        e
        for e in run.of_kind("schedule")
        if e.data.get("initial") and (e.data.get("settings") or {}).get("total_steps")
    ]
    asked, planned = int(found[1]), int(found[2])
    places = (*sites_of(*made[:1]), *((run.ending.site,) if run.ending.site else ()))
    text = f"planned for {planned} steps, asked to move {asked} times"
    advice = (
        "Set total_steps to the number of optimizer steps that are really taken: epochs * "
        "len(loader), partial batches included."
    )
    return _finding(
        f"The schedule is over before the run: {text}",
        text,
        places,
        float(asked),
        float(planned),
        advice,
        0.95,
    )


def _wrong_unit(run: Run, made: Event, mine: list[Event]) -> Finding | None:
    settings = made.data.get("settings") or {}
    planned = next(
        (
            int(settings[k])
            for k in PLANNED
            if isinstance(settings.get(k), (int, float)) and settings[k] > 0
        ),
        0,
    )
    steps, moved = run.num_steps, len(mine)
    if planned < 2 or moved < 2:
        return None
    cls = made.data.get("cls")
    epochs = 1 + max((b.epoch for b in run.batches if b.phase == "train"), default=0)
    text = f"{cls} is planned for {planned} moves and moved {moved} times in {steps} steps"
    places = sites_of(mine[0], made)
    if moved <= 0.34 * planned and steps >= 3 * moved and 0.8 * steps <= planned <= 1.25 * steps:
        title = f"{cls} counts steps ({planned}) but moves once per epoch: {moved} times"
        return _finding(
            title,
            text,
            places,
            float(moved),
            float(planned),
            "Call scheduler.step() after every optimizer step.",
            0.95,
        )
    per_step = moved >= 0.9 * steps
    if (
        per_step
        and cls != "CyclicLR"
        and planned < 0.5 * steps
        and epochs > 1
        and abs(planned - epochs) <= max(1, 0.2 * epochs)
    ):
        title = f"{cls} counts epochs ({planned}) but moves at every step: {moved} times"
        return _finding(
            title,
            text,
            places,
            float(moved),
            float(planned),
            "Call scheduler.step() once per epoch.",
            0.95,
        )
    if per_step and cls == "CosineAnnealingLR" and moved > 1.5 * planned:
        title = f"The cosine is over after {planned} moves and climbs again: it moved {moved} times"
        return _finding(
            title,
            text,
            sites_of(made, mine[0]),
            float(moved),
            float(planned),
            f"Set T_max to {moved}.",
            0.9,
        )
    return None


def _wrong_way(run: Run, made: Event, mine: list[Event]) -> Finding | None:
    """A plateau that is looked for in the wrong direction: every improvement counts as none."""
    if (made.data.get("settings") or {}).get("mode") != "max":
        return None  # in mode "min" a rising value may be a validation loss that gets worse
    given = [float(e.data["metric"]) for e in mine if isinstance(e.data.get("metric"), float)]
    lowered = sum(e.data["lr_after"][:1] < e.data["lr_before"][:1] for e in mine)
    if (
        len(given) < 4
        or lowered < 3
        or not given[-1] < given[0] - 0.1 * abs(given[0])
        or not fell(run.losses)
    ):
        return None
    return _finding(
        (
            'ReduceLROnPlateau waits for its value to rise (mode="max"), and it falls as it '
            "should: the LR is lowered for nothing"
        ),
        (
            f"the value goes from {given[0]:.4g} to {given[-1]:.4g} with the training loss; "
            f"the LR was lowered {lowered} times"
        ),
        sites_of(made, mine[0]),
        float(lowered),
        0.0,
        'Say mode="min" for a loss.',
        0.93,
    )


def _warm_up_by_epoch(run: Run, made: Event, mine: list[Event]) -> Finding | None:
    """A warm-up that is counted in steps and moved once per epoch: a staircase that ends long
    before the LR is reached.
    """
    full = next((float(v) for v in made.data.get("lr_before") or () if v), np.nan)
    rates = np.array([float((e.data.get("lr_after") or [np.nan])[0]) for e in (made, *mine)])
    rises = np.diff(rates)
    if (
        len(mine) < 3
        or len(mine) > 0.34 * run.num_steps
        or not np.all(rises > 0)
        or float(np.ptp(rises)) > 0.3 * float(max(rises))
    ):
        return None
    reached = float(rates[-1])
    if not reached < 0.6 * full:
        return None
    needs = round(full / float(np.median(rises)))
    return _finding(
        f"The warm-up never ends: it needs {needs} moves and makes {len(mine)}, once per epoch",
        (
            f"{made.data.get('cls')} moved {len(mine)} times in {run.num_steps} steps: "
            f"{rates[0]:.2g} to {reached:.2g} of {full:g}"
        ),
        sites_of(made, mine[0]),
        reached,
        full,
        (
            "Move the scheduler after every optimizer step if its warm-up counts steps, or "
            "shorten the warm-up."
        ),
        0.92,
    )


def _warm_up_written(run: Run, index: int, rates: np.ndarray) -> tuple[Site, ...]:
    """Where the source has the number of steps that the rise would take to the optimizer's own
    LR.
    """
    optimizer = next((o for o in run.optimizers if o.index == index), None)
    rise = float(np.median(np.diff(rates)))
    full = optimizer.defaults.get("lr") if optimizer is not None else None
    if not isinstance(full, (int, float)) or rise <= 0:
        return ()
    return numbers_equal_to(run, [float(round(full / rise))], ("warm", "ramp"))


def _by_curve(
    rates: np.ndarray, places: tuple[Site, ...], warm_up: tuple[Site, ...]
) -> Finding | None:
    peak = float(np.max(rates))
    tiny = rates < 1e-4 * peak
    at = int(np.argmax(rates))
    over = float(np.mean(tiny[at:])) * (len(rates) - at) / len(rates)
    if over > 0.33 and tiny[-1]:
        first = int(at + np.flatnonzero(tiny[at:])[0])
        return _finding(
            f"The learning rate is all but zero from step {first} on, for {over:.0%} of the run",
            f"LR {peak:g} at its peak, {float(rates[first]):.2g} at step {first} of {len(rates)}",
            places,
            over,
            0.0,
            (
                "Stretch the schedule to the real number of steps, or move it once per epoch "
                "if that is its unit."
            ),
            0.9,
        )
    rises = np.diff(rates)
    steady = float(np.mean(rises > 0)) > 0.95 and len(rates) >= 20
    if not steady:
        return None
    straight = (
        abs(
            float(np.median(rises[: len(rises) // 4])) / float(np.median(rises[-len(rises) // 4 :]))
            - 1
        )
        < 0.3
    )
    if straight:
        return _finding(
            "The warm-up never ends: the learning rate still rises at the last step",
            (
                f"LR {float(rates[0]):.2g} at step 0, {peak:.2g} at the last of {len(rates)} "
                "steps, rising all the way"
            ),
            (*warm_up[:1], *places)[:3],
            peak,
            float("nan"),
            "Shorten the warm-up to a few per cent of the run.",
            0.88,
        )
    return None
