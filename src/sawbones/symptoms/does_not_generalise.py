"""Evaluation ends no better than a constant answer, training does

## What it measures
The best of all evaluations, by the loss that training uses, against the loss of a constant answer,
while training ends at least a fifth below it. Where answers are compared with labels and more are
right than the commonest class gives, nothing is wrong: a loss may rise from confident mistakes.
Without such a loss, the hits of the second half decide. They do as well in a run of 100 and
more steps whose loss has come below the constant answer by less than a fifth, so by heart at most,
where no class has more than three fifths of the labels.

## Null
The best constant answer; for hits, the share of the commonest class with the interval of the
share. Fewer than 200 evaluated targets, or labels of which one class has four fifths, tell nothing.

## What it may mean
Evaluation prepares its data in another way than training, labels of one side are misaligned, the
model evaluates in the wrong mode, or what was learned was learned by heart.

## First commands
- `sawbones try eval-mode train.py`: healed, evaluation runs in training mode.
- `sawbones try tiny-set train.py` and compare the inputs of both sides: mean, spread, range, order
  of the classes. Evaluate the training rows through the evaluation code: bad there too, the code is
  at fault; good there, the rows are.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.by_heart import beats_the_commonest
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.evaluations import hits, latest_hits, validation_curve
from sawbones.stats.levels import Level, level, part
from sawbones.stats.supervised import (
    STANDARD_ERRORS,
    NotSupervised,
    Supervised,
    evaluated_targets,
    supervised,
)

CLASS = "ill"
CALLED = (
    "does not generalise",
    "does not generalize",
    "validation at chance",
    "validation is bad",
    "test accuracy at chance",
    "bad on new data",
    "train fine validation bad",
)
NEEDS = ("steps", "losses", "validation")
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "evaluation.*", "loop.train-in-eval-mode")


def look(run: Run) -> Symptom | None:
    try:
        task = supervised(run)
        number = evaluated_targets(run, task.fn)
    except NotSupervised as why:
        raise NothingToJudge(str(why)) from None
    end = level(part(task.losses, 0.75, 1.0))
    trained = f"; training ends at {end.mean:.4g}, a constant answer scores {task.constant:.4g}"
    if not limits.LEARNED_TRAINING.kept_by(end.mean / task.constant):
        return _by_heart(run, task, end, trained)
    counted, latest = hits(run), latest_hits(run, run.num_steps // 2)
    if any(beats_the_commonest(*found) for found in (counted, latest) if found is not None):
        return None
    if number:
        return _by_loss(run, task, number, trained)
    if latest is None:
        raise NothingToJudge("the last evaluations take no loss of the trained kind")
    return _by_hits(*latest, trained, run)


def _by_heart(run: Run, task: Supervised, end: Level, trained: str) -> Symptom | None:
    """What little training has gained does not carry over."""
    counted = hits(run)
    gained = end.mean + STANDARD_ERRORS * end.error < task.constant
    if counted is None or not gained or not limits.STEPS_FOR_PACE.reached_by(run.num_steps):
        return None
    if beats_the_commonest(*counted) or not limits.EVEN_CLASSES.kept_by(counted[1]):
        return None
    return _by_hits(*counted, trained, run)


def _by_hits(share: float, commonest: float, number: int, trained: str, run: Run) -> Symptom:
    if limits.ONE_CLASS_PREVAILS.passed_by(commonest):
        raise NothingToJudge("one class has most of the labels: hits tell little")
    if not limits.TARGETS_TO_TELL.reached_by(number):
        raise NothingToJudge(f"{number} evaluated answers are too few to tell")
    return Symptom(
        "",
        CLASS,
        f"evaluation is right in {share:.1%} of {number} answers, the commonest class "
        f"alone gives {commonest:.1%}{trained}",
        share,
        commonest,
        (0, run.num_steps - 1),
    )


def _by_loss(run: Run, task: Supervised, number: int, trained: str) -> Symptom | None:
    steps, means, _ = validation_curve(run)
    if not len(means):
        raise NothingToJudge("evaluation takes no loss of the trained kind")
    if not limits.TARGETS_TO_TELL.reached_by(number):
        raise NothingToJudge(f"{number} evaluated targets are too few to tell")
    best = float(means.min())
    if not limits.NO_BETTER_EVALUATED.reached_by(best / task.constant_at_most):
        return None
    return Symptom(
        "",
        CLASS,
        f"the evaluation loss is never under {best:.4g}{trained}",
        best,
        task.constant,
        (int(steps[0]), int(steps[-1])),
    )
