"""Whether what training has learned carries over to other samples."""

from __future__ import annotations

import math

from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run
from sawbones.schema.labels import LabelsTold
from sawbones.stats.distributions import wilson
from sawbones.stats.evaluations import hits
from sawbones.stats.learning import (
    constant_answer,
    fresh_losses,
    held_out_loss,
    new_samples_learned,
)

LEAST_FRESH = 15  # steps: fewer losses of new samples have no level


def beats_the_commonest(share: float, commonest: float, number: int) -> bool:
    """More answers are right than the commonest class gives, by the upper end of the interval."""
    upper = wilson(share * number, number)[1]
    return limits.HITS_OVER_COMMONEST.passed_by(upper - commonest)


def only_by_heart(run: Run, probe: LabelsTold) -> bool:
    """Samples not seen before gain nothing: neither those of the first epoch, nor those of an
    evaluation that there has to be.
    """
    base, fresh = constant_answer(run, probe), fresh_losses(run)
    if base is None or len(fresh) < LEAST_FRESH or new_samples_learned(fresh, base, probe):
        return False
    evaluated = held_out_loss(run)
    if math.isfinite(evaluated):
        return evaluated >= base
    counted = hits(run)
    enough = counted is not None and limits.TARGETS_TO_TELL.reached_by(counted[2])
    return counted is not None and enough and not beats_the_commonest(*counted)
