"""Losses that weigh log-probabilities of what was drawn, as deep steps measured them."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema import Run, Site
from sawbones.schema.source import as_site

_SAME = 1e-6  # relative difference of weights that are all one


@dataclass(frozen=True)
class DrawnLoss:
    """On one deep step; see observe.deep.draws."""

    step: int
    agreement: float
    low: float  # of the weights
    high: float
    each: bool
    places: tuple[tuple[Site, str], ...]  # where the probabilities are taken, and by what
    term: tuple[Site, ...]  # where they are weighed

    @property
    def is_one_weight(self) -> bool:
        return abs(self.high - self.low) <= _SAME * max(abs(self.high), abs(self.low))


def drawn_losses(run: Run) -> list[DrawnLoss]:
    """Empty where the weights are one number throughout: then what was drawn is only made more or
    less likely, and nothing says which of it is better.
    """
    found = [
        DrawnLoss(
            deep.step,
            float(told["agreement"]),
            float(told["low"]),
            float(told["high"]),
            bool(told["each"]),
            tuple(
                (site, str(place["fn"]))
                for place in told["places"]
                if (site := as_site(place["site"])) is not None
            ),
            tuple(site for raw in told["term"] if (site := as_site(raw)) is not None),
        )
        for deep in run.deep
        if (told := deep.probes.get("draws"))
    ]
    weights = {round(one.low, 9) for one in found if one.is_one_weight}
    if len(weights) > len(found) / 2:
        return found
    return [one for one in found if not one.is_one_weight]
