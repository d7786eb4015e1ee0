"""Readings of the label probe: how much inputs tell about the labels beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def way_to_certainty(probe: Mapping[str, Any]) -> float:
    """The gain over chance, as a share of what there is to be gained."""
    left = 1 - probe["chance"]
    return float((probe["score"] - probe["chance"]) / left) if left else 0.0
