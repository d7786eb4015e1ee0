"""A model that memorises: training falls while validation rises

## What it sees
The mean validation loss of every evaluation, by the loss function that training uses. Fires when it
ends at least 1.4 times its best, the best lies in the first 60 % of at least six evaluations, it
rises steadily from there, and the training loss at the end is less than 60 % of what it was at the
best evaluation. Where that has fallen below 5 %, a rise by 4 % is enough; where it has fallen below
20 % and is under a tenth of the validation loss, a rise by 10 % that goes on for four evaluations
and more: of nine pairs in ten the later one is higher.
Without such a loss, an error that the evaluation computes by hand (outputs less targets) is read
instead. The splits must be clean.

## Why it matters
From the best evaluation on, every step makes the model worse on new data.

## Looks like
A training loss close to zero and a validation loss that has turned around long ago.

## Example
    model = torch.nn.Sequential(torch.nn.Linear(20, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(200):
        train(model, optimizer, fifty_samples)

## Use instead
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    for epoch in range(200):
        train(model, optimizer, fifty_samples)
        if stopper.should_stop(evaluate(model)):
            break

## Confirm it
No experiment: the two curves are the definition. Other faults bring the same picture about, and
stand before this one.

## False alarms
A short rise at the end, noise of a small validation set, and a gap that stays constant are normal.
A training loss that rises as well is divergence, not memory. A script that puts weights from before
the rise back into the model in the end is done with it, and so is one that puts those back which
answered most of an evaluation right.

## References
Prechelt, "Early stopping - but when?" (1998).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sawbones.evidence import Limit, NothingToJudge, compared, context, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.stats.evaluations import error_curve, fresh_batches, validation_curve
from sawbones.stats.series import Floats
from sawbones.stats.splits import shared, splits
from sawbones.trace.locate import locate

Steps = npt.NDArray[np.int64]

NEEDS = ("events", "validation", "losses")
USES = ("evaluation", "source_numbers", "restored", "evaluated")
EXPLAINS = ()
EXPERIMENT = None
MIN_EVALUATIONS = 6  # fewer make no curve
MIN_RISES = 4  # evaluations in a row, where a small rise has to do
MIN_TRAINED = 8  # samples, so that a number of the source is no chance match


def check(run: Run) -> Iterator[Finding]:
    steps, values, site = validation_curve(run)
    same = len(values) > 0  # the training loss itself; else an error in a unit of its own
    if not same:
        steps, values, site = error_curve(run)
    if len(values) < MIN_EVALUATIONS or not np.all(np.isfinite(values)) or values.min() < 0:
        raise NothingToJudge(f"no validation loss of {MIN_EVALUATIONS} evaluations")
    best = int(np.argmin(values))
    lowest, last = float(values[best]), float(np.median(values[-2:]))
    then, end = _train_level(run, int(steps[best])), _train_level(run, int(steps[-1]))
    enough = _rise_wanted(end, then, last if same else None, values[best:])
    if (
        enough is None
        or not limits.BEST_IS_EARLY.kept_by(best / (len(values) - 1))
        or not enough.reached_by(last / lowest if lowest else np.inf)
        or not (limits.LEAST_RISE.reached_by(last - lowest) or enough is limits.RISE_BY_HEART)
        or limits.RISING_STEADILY.undercut_by(float(np.mean(np.diff(values[best:]) > 0)))
        or not _is_clean(run)
        or _is_put_back(run, steps, values, enough)
    ):
        return
    optimizers = (o.site for o in run.optimizers)
    yield finding(
        "The model memorises: the validation loss rises while the training loss falls",
        locate(*_settings(run), site, *optimizers)[:4],
        (
            compared(
                f"validation loss is best ({lowest:.3g}) at step {steps[best]} and ends at "
                f"{last:.3g}",
                last,
                enough,
                against=lowest,
                signal="events",
                steps=(int(steps[best]), int(steps[-1])),
            ),
            context(
                f"training loss falls from {then:.3g} to {end:.3g} in the same time",
                signal="losses",
                value=end,
                expected=then,
            ),
        ),
        Fix(
            f"Stop at the best validation loss (step {steps[best]}), use a smaller model, "
            "regularise it, or add data."
        ),
    )


def _is_put_back(run: Run, steps: Steps, values: Floats, enough: Limit) -> bool:
    """Weights from before the rise go into the model once training is over, or those that answered
    most right. Weights of an unknown time may be either.
    """
    best = int(np.argmin(values))
    step = int(steps[best])
    for row in run.loaded_weights:
        if not row.step >= run.num_steps > step or row.is_own:
            continue
        if row.of_step is None or _answers_best(run, row.of_step):
            return True
        then = float(values[np.argmin(np.abs(steps - row.of_step))])
        if not enough.reached_by(then / values[best]):
            return True
    return False


def _answers_best(run: Run, step: int) -> bool:
    """Whether no evaluation before the end of training had more right answers than that of a step."""
    graded = {one.step: one.accuracy for one in reversed(run.evaluated)}  # the first of each step
    return step in graded and graded[step] == max(graded.values())


def _rise_wanted(end: float, then: float, last: float | None, since: Floats) -> Limit | None:
    """How far validation has to rise, by how far training has fallen: below what it was at the best
    evaluation, and below the validation loss where both are the same loss. None: not far enough.
    `since`: validation from its best on.
    """
    if not (np.isfinite(then) and np.isfinite(end)):
        return None
    if last is not None and end < 0 <= since.min():
        return None  # what training pulls down is not the loss that validation takes: its negative
    ratios = [_left(end, level) for level in (then, last) if level is not None]
    if not all(limits.TRAINING_FALL.kept_by(ratio) for ratio in ratios):
        return None
    if all(limits.BY_HEART.undercut_by(ratio) for ratio in ratios):
        return limits.RISE_BY_HEART
    if (
        last is not None
        and len(since) > MIN_RISES
        and limits.MOSTLY_BY_HEART.undercut_by(ratios[0])
        and limits.FAR_BELOW_VALIDATION.undercut_by(ratios[1])
        and limits.RISING_ALWAYS.reached_by(_share_rising(since))
    ):
        return limits.RISE_MOSTLY
    return limits.RISE


def _share_rising(values: Floats) -> float:
    """Of all pairs of evaluations, however far apart: neighbours differ by noise."""
    first, second = np.triu_indices(len(values), 1)
    return float(np.mean(values[second] - values[first] > 0))


def _left(end: float, level: float) -> float:
    """What is left of a level; of one that is not above zero, anything lower is a fall."""
    if level > 0:
        return end / level
    return -np.inf if level - end > 0 else np.inf


def _is_clean(run: Run) -> bool:
    """Hardly any evaluated sample was trained on; or every evaluation goes over batches of training
    and over others, one after the other.
    """
    for part in splits(run):
        for batches in part.sources().values():
            hit, total = shared(batches, part.trained_on)
            if limits.TRAINED_SAMPLES.passed_by(hit / max(total, 1)):
                marks = fresh_batches(run).values()
                return all(None not in m and any(m) and not all(m) for m in marks)
    return True


def _train_level(run: Run, step: int) -> float:
    losses = run.losses[max(0, step - 10) : max(1, step)]
    losses = losses[np.isfinite(losses)]
    return float(np.median(losses)) if len(losses) else float("nan")


def _settings(run: Run) -> list[Site]:
    """Numbers that decide how long is trained on how much: the size of the training set, and the
    patience of an early stop.
    """
    samples = len({f for part in splits(run) for f in part.trained_on})
    rows = [r for r in run.source_numbers if r.name]
    chosen = [r for r in rows if "patience" in r.name.lower()]
    if not chosen and samples >= MIN_TRAINED:
        above = [r for r in rows if r.value - samples > 0]
        chosen = [r for r in rows if r.value == samples] or [
            r for r in above if limits.PART_OF_A_NUMBER.reached_by(samples / r.value)
        ]
    return [r.site for r in chosen[:1]]
