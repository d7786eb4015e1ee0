"""Evaluation ends no better than a constant answer, training does

## What it measures
The best of all evaluations, by the loss that training uses, against the loss of a constant answer,
while training ends at least a fifth below it. Where answers are compared with labels, the share of
hits decides instead: a loss may rise from confident mistakes while most answers are right.

## Null
The best constant answer; for hits, the share of the commonest class with the interval of the
share. Fewer than 200 evaluated targets, or labels of which one class has four fifths, tell nothing.

## What it may mean
Evaluation prepares its data in another way than training, labels of one side are misaligned, the
model evaluates in the wrong mode, or what was learned was learned by heart.
"""

from __future__ import annotations

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run, Symptom
from sawbones.stats.distributions import wilson
from sawbones.stats.evaluations import hits, validation_curve
from sawbones.stats.levels import level, part
from sawbones.stats.supervised import NotSupervised, Supervised, evaluated_targets, supervised

CLASS = "ill"
NEEDS = ("steps", "losses", "validation")
CAUSES = ("data.*", "pipeline.*", "model.*", "loss.*", "evaluation.*", "loop.train-in-eval-mode")


def look(run: Run) -> Symptom | None:
    try:
        task = supervised(run)
        number = evaluated_targets(run, task.fn)
    except NotSupervised as why:
        raise NothingToJudge(str(why)) from None
    end = level(part(task.losses, 0.75, 1.0))
    if not limits.LEARNED_TRAINING.kept_by(end.mean / task.constant):
        return None
    counted = hits(run)
    if counted is not None:
        return _by_hits(run, end.mean, task, *counted)
    return _by_loss(run, end.mean, task, number)


def _by_hits(
    run: Run, trained: float, task: Supervised, share: float, commonest: float, number: int
) -> Symptom | None:
    if limits.ONE_CLASS_PREVAILS.passed_by(commonest):
        raise NothingToJudge("one class has most of the labels: hits tell little")
    if not limits.TARGETS_TO_TELL.reached_by(number):
        raise NothingToJudge(f"{number} evaluated answers are too few to tell")
    upper = wilson(share * number, number)[1]
    if not limits.HITS_OVER_COMMONEST.kept_by(upper - commonest):
        return None
    return Symptom(
        "",
        CLASS,
        f"evaluation is right in {share:.1%} of {number} answers, the commonest class alone gives "
        f"{commonest:.1%}; training ends at {trained:.4g}, a constant answer scores "
        f"{task.constant:.4g}",
        share,
        commonest,
        (0, run.num_steps - 1),
    )


def _by_loss(run: Run, trained: float, task: Supervised, number: int) -> Symptom | None:
    steps, means, _ = validation_curve(run)
    if not len(means):
        raise NothingToJudge("evaluation takes no loss of the trained kind")
    if not limits.TARGETS_TO_TELL.reached_by(number):
        raise NothingToJudge(f"{number} evaluated targets are too few to tell")
    best = float(means.min())
    if not limits.NO_BETTER_EVALUATED.reached_by(best / task.constant):
        return None
    return Symptom(
        "",
        CLASS,
        f"the evaluation loss is never under {best:.4g}, a constant answer scores "
        f"{task.constant:.4g}; training ends at {trained:.4g}",
        best,
        task.constant,
        (int(steps[0]), int(steps[-1])),
    )
