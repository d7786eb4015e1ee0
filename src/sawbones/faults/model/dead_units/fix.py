"""torch's own initialisation, or a bias of zero; other numbers in front of an activation are for a
person to choose.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.initialising import own_initialisation
from sawbones.fixing.recipes import Case, Change, Decide


def fix(case: Case) -> Iterator[Change | Decide]:
    yield from own_initialisation(case)
    yield Decide(
        "Choose what lets these units fire: a smaller threshold, gain or bias in front of the "
        "activation (more units fire, what they make is less sparse), LeakyReLU or GELU (units "
        "that are off still learn, and none is exactly zero), or a normalisation before it (the "
        "model changes, and saved weights no longer fit)."
    )
