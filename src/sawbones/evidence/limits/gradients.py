"""Limits of gradients that were written by hand."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

RELATIVE_ERROR = Limit(
    1e-4,
    "relative difference of two slopes",
    "central differences with a step of 1e-6 in float64 err by 1e-9 or so for values around 1; "
    "curvature and scales up to a thousand times that leave 1e-6; a forgotten term is never below "
    "1e-3",
)
