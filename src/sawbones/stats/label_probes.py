"""Readings of the label probe: how much inputs tell about the labels beside them."""

from __future__ import annotations

import math

from sawbones.schema.labels import LabelsTold


def way_to_certainty(probe: LabelsTold) -> float:
    """The gain over chance, as a share of what there is to be gained."""
    left = 1 - probe.chance
    return (probe.score - probe.chance) / left if left else 0.0


def z_of_fewer(probe: LabelsTold, num: int) -> float:
    """What so few of its samples would show: the spread by chance grows as their root shrinks."""
    return probe.z * math.sqrt(min(1.0, num / probe.num))
