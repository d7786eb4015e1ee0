"""Reconstructions that a model gives up: it answers the same to every row."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence.limits import symptoms as limits
from sawbones.schema import Run
from sawbones.stats.levels import level, part
from sawbones.stats.reconstruction import Reconstruction, reconstructions
from sawbones.stats.supervised import STANDARD_ERRORS, latest_fall


def given_up(run: Run) -> Iterator[tuple[Reconstruction, float]]:
    """Terms that end no better than the mean of all rows and no longer fall, and where they end."""
    for term in reconstructions(run):
        if not limits.STEPS_TO_RECONSTRUCT.reached_by(len(term.losses)):
            continue
        end = level(part(term.losses, 0.75, 1.0))
        constant = term.same_for_all
        gain = (constant - end.mean + STANDARD_ERRORS * end.error) / constant
        if limits.GAIN_OVER_CONSTANT.kept_by(gain) and not limits.STILL_FALLING.reached_by(
            latest_fall(term.losses)
        ):
            yield term, end.mean
