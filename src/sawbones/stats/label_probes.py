"""Readings of the label probe: how much inputs tell about the labels beside them."""

from __future__ import annotations

from sawbones.schema.labels import LabelsTold


def way_to_certainty(probe: LabelsTold) -> float:
    """The gain over chance, as a share of what there is to be gained."""
    left = 1 - probe.chance
    return (probe.score - probe.chance) / left if left else 0.0
