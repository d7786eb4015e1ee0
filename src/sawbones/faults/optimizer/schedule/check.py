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
No experiment: the LR curve stands against the steps really taken.

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
import numpy.typing as npt

from sawbones.evidence import NothingToJudge, compared, counted, finding, refused
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import optimizer as limits
from sawbones.evidence.limits.loop import SCHEDULE_MOVES
from sawbones.schema import Event, Finding, Fix, Run, Site
from sawbones.stats.crash_origins import made_as_number, sites
from sawbones.stats.crashes import inner_frame
from sawbones.stats.series import fell
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of, numbers_equal

NEEDS = ("steps",)
USES = ("source_calls", "source_numbers")
EXPLAINS = ("optimizer.lr-too-low", "evaluation.collapsed-prediction", "model.frozen-params")
EXPERIMENT = None
RAN_OUT = re.compile(r"Tried to step (\d+) times. The specified number of total steps is (\d+)")
PLANNED = ("total_steps", "T_max", "total_iters")
MIN_STEPS = 10  # a schedule of fewer has no shape
MIN_LINE = 20  # steps, to call a rise endless
MIN_METRICS = 4  # values, three of which lower the LR
Floats = npt.NDArray[np.float64]


def check(run: Run) -> Iterator[Finding]:
    made = [e for e in run.of_kind("schedule") if e.data.get("initial")]
    moves = [e for e in run.of_kind("schedule") if not e.data.get("initial")]
    ran_out = RAN_OUT.search(run.ending.message or "") if run.ending.kind == "exception" else None
    if ran_out is not None:
        yield _ran_out(run, made, int(ran_out[1]), int(ran_out[2]))
        return
    if run.ending.kind != "finished" or run.num_steps < MIN_STEPS:
        raise NothingToJudge("the run did not come to its own end, or is too short")
    curves = list(_curves(run))
    if not made and not curves:
        raise NothingToJudge("the learning rate is the same at every step")
    found = next(_by_plan(run, made, moves), None)
    if found is None:
        where = locate(*made[:1], *moves[:1]) or calls_of(run, ("rate",))[:3]
        found = next((f for c in curves if (f := _by_curve(run, *c, where)) is not None), None)
    if found is not None:
        yield found


def _by_plan(run: Run, made: list[Event], moves: list[Event]) -> Iterator[Finding]:
    for scheduler in made:
        mine = [e for e in moves if e.data.get("scheduler") == scheduler.data.get("scheduler")]
        found = (
            _wrong_unit(run, scheduler, mine)
            or _warm_up_by_epoch(run, scheduler, mine)
            or _wrong_way(run, scheduler, mine)
        )
        if found is not None:
            yield found


def _curves(run: Run) -> Iterator[tuple[int, Floats]]:
    """The learning rates of each optimizer that has more than one."""
    for index in sorted(set(run.steps["optimizer"].tolist())):
        rates = run.steps["lr"][run.steps["optimizer"] == index]
        if len(rates) >= MIN_STEPS and np.all(np.isfinite(rates)) and np.ptp(rates) > 0:
            yield int(index), rates


def _ran_out(run: Run, made: list[Event], asked: int, planned: int) -> Finding:
    """A scheduler with a fixed length refuses to go on."""
    fixed = [e for e in made if (e.data.get("settings") or {}).get("total_steps")]
    text = f"planned for {planned} steps, asked to move {asked} times"
    return finding(
        f"The schedule is over before the run: {text}",
        locate(*_planned_at(run, planned), *locate(*fixed[:1]), run.ending),
        (refused(text, value=asked, expected=planned, signal="schedule"),),
        Fix(
            "Set total_steps to the number of optimizer steps that are really taken: epochs * "
            "len(loader), partial batches included."
        ),
    )


def _planned_at(run: Run, planned: int) -> list[Site]:
    """Where the number of steps was computed that the scheduler was given."""
    died = run.ending.crash
    expression = inner_frame(died).expression if died is not None else None
    texts = [o.text for o in expression.operands] if expression is not None else []
    return sites(*(made_as_number(run, text, planned) for text in texts[:1]))


def _wrong_unit(run: Run, made: Event, mine: list[Event]) -> Finding | None:
    settings = made.data.get("settings") or {}
    lengths = [settings[k] for k in PLANNED if isinstance(settings.get(k), (int, float))]
    planned = next((int(length) for length in lengths if length > 0), 0)
    steps, moved = run.num_steps, len(mine)
    if planned < 2 or moved < 2:
        return None
    cls = made.data.get("cls")
    epochs = 1 + max((b.epoch for b in run.batches if b.phase == "train"), default=0)
    text = f"{cls} is planned for {planned} moves and moved {moved} times in {steps} steps"
    by_step = limits.SAME_LENGTH.kept_by(max(planned / steps, steps / planned))
    if by_step and 3 * moved <= steps and limits.RARE_MOVES.kept_by(moved / planned):
        return finding(
            f"{cls} counts steps ({planned}) but moves once per epoch: {moved} times",
            locate(mine[0], made),
            (
                compared(
                    text, moved, limits.RARE_MOVES, below=True, against=planned, signal="schedule"
                ),
            ),
            Fix("Call scheduler.step() after every optimizer step."),
        )
    if not SCHEDULE_MOVES.reached_by(moved / steps):
        return None
    apart = abs(planned - epochs)
    by_epoch = epochs > 1 and (apart <= 1 or limits.EPOCH_COUNT.kept_by(apart / epochs))
    if by_epoch and cls != "CyclicLR" and 2 * planned < steps:
        return finding(
            f"{cls} counts epochs ({planned}) but moves at every step: {moved} times",
            locate(mine[0], made),
            (compared(text, moved, limits.PLAN_OVERRUN, against=planned, signal="schedule"),),
            Fix("Call scheduler.step() once per epoch."),
        )
    if cls == "CosineAnnealingLR" and limits.PLAN_OVERRUN.passed_by(moved / planned):
        return finding(
            f"The cosine is over after {planned} moves and climbs again: it moved {moved} times",
            locate(made, mine[0]),
            (compared(text, moved, limits.PLAN_OVERRUN, against=planned, signal="schedule"),),
            Fix(f"Set T_max to {moved}."),
        )
    return None


def _wrong_way(run: Run, made: Event, mine: list[Event]) -> Finding | None:
    """A plateau that is looked for in the wrong direction: every improvement counts as none."""
    if (made.data.get("settings") or {}).get("mode") != "max":
        return None  # in mode "min" a rising value may be a validation loss that gets worse
    given = [float(e.data["metric"]) for e in mine if isinstance(e.data.get("metric"), float)]
    lowered = sum(
        after - before < 0
        for e in mine
        for after, before in zip(e.data["lr_after"][:1], e.data["lr_before"][:1], strict=False)
    )
    if len(given) < MIN_METRICS or lowered < MIN_METRICS - 1 or not fell(run.losses):
        return None
    fallen = (given[0] - given[-1]) / max(abs(given[0]), TINY)
    if not limits.METRIC_FALLS.passed_by(fallen):
        return None
    return finding(
        'ReduceLROnPlateau waits for its value to rise (mode="max"), and it falls as it '
        "should: the LR is lowered for nothing",
        locate(made, mine[0]),
        (
            compared(
                f"the value goes from {given[0]:.4g} to {given[-1]:.4g} with the training loss; "
                f"the LR was lowered {lowered} times",
                fallen,
                limits.METRIC_FALLS,
                expected=0,
                signal="schedule",
            ),
        ),
        Fix('Say mode="min" for a loss.'),
    )


def _warm_up_by_epoch(run: Run, made: Event, mine: list[Event]) -> Finding | None:
    """A warm-up that is counted in steps and moved once per epoch: a staircase that ends long
    before the LR is reached.
    """
    full = next((float(v) for v in made.data.get("lr_before") or () if v), np.nan)
    rates = np.array([float((e.data.get("lr_after") or [np.nan])[0]) for e in (made, *mine)])
    rises = np.diff(rates)
    reached = float(rates[-1])
    if (
        len(mine) < 3
        or limits.RARE_MOVES.passed_by(len(mine) / run.num_steps)
        or not np.all(rises > 0)
        or limits.EVEN_RISE.passed_by(float(np.ptp(rises) / max(rises)))
        or not limits.WARM_UP_REACHED.undercut_by(reached / full)
    ):
        return None
    needs = round(full / float(np.median(rises)))
    return finding(
        f"The warm-up never ends: it needs {needs} moves and makes {len(mine)}, once per epoch",
        locate(made, mine[0]),
        (
            compared(
                f"{made.data.get('cls')} moved {len(mine)} times in {run.num_steps} steps: "
                f"{rates[0]:.2g} to {reached:.2g} of {full:g}",
                reached,
                limits.WARM_UP_REACHED,
                below=True,
                against=full,
                signal="schedule",
            ),
        ),
        Fix(
            "Move the scheduler after every optimizer step if its warm-up counts steps, or "
            "shorten the warm-up."
        ),
    )


def _warm_up_written(run: Run, index: int, rates: Floats) -> tuple[Site, ...]:
    """Where the source has the number of steps that the rise would take to the optimizer's own
    LR.
    """
    optimizer = next((o for o in run.optimizers if o.index == index), None)
    rise = float(np.median(np.diff(rates)))
    full = optimizer.defaults.get("lr") if optimizer is not None else None
    if not isinstance(full, (int, float)) or rise <= 0:
        return ()
    return numbers_equal(run, float(round(full / rise)), words=("warm", "ramp"))


def _by_curve(run: Run, index: int, rates: Floats, where: tuple[Site, ...]) -> Finding | None:
    top = int(np.argmax(rates))
    peak = float(rates[top])
    tiny = [
        top + i for i, r in enumerate(rates[top:] / peak) if limits.NEGLIGIBLE_RATE.undercut_by(r)
    ]
    share = len(tiny) / len(rates)
    if limits.NEGLIGIBLE_STEPS.passed_by(share) and tiny[-1] == len(rates) - 1:
        first = tiny[0]
        return finding(
            f"The learning rate is all but zero from step {first} on, for {share:.0%} of the run",
            where,
            (
                counted(
                    (
                        f"LR {peak:g} at its peak, {float(rates[first]):.2g} at step {first} "
                        f"of {len(rates)}"
                    ),
                    len(tiny),
                    len(rates),
                    limits.NEGLIGIBLE_STEPS,
                    signal="schedule",
                ),
            ),
            Fix(
                "Stretch the schedule to the real number of steps, or move it once per epoch "
                "if that is its unit."
            ),
        )
    rises = np.diff(rates)
    rising = int(np.sum(rises > 0))
    if len(rates) < MIN_LINE or not limits.RISING_STEPS.passed_by(rising / len(rises)):
        return None
    begin, end = np.median(rises[: len(rises) // 4]), np.median(rises[-len(rises) // 4 :])
    if not limits.EVEN_RISE.undercut_by(float(abs(begin / end - 1))):
        return None
    return finding(
        "The warm-up never ends: the learning rate still rises at the last step",
        (*_warm_up_written(run, index, rates)[:1], *where)[:3],
        (
            counted(
                f"LR {float(rates[0]):.2g} at step 0, {peak:.2g} at the last of {len(rates)} "
                "steps, rising all the way",
                rising,
                len(rises),
                limits.RISING_STEPS,
                signal="schedule",
            ),
        ),
        Fix("Shorten the warm-up to a few per cent of the run."),
    )
