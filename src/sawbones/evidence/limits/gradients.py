"""Limits of gradients that were written by hand."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

GRADIENT_CHECK = Limit(
    1e-6,
    "relative difference of two slopes, beyond what is known of them",
    "what engineers ask of a gradient check in float64; central differences err by 1e-9 or so, and "
    "where edges or large sums make them worse, that is measured and taken off",
)
RELATIVE_ERROR = Limit(
    1e-4,
    "relative difference of two slopes",
    "central differences with a step of 1e-6 in float64 err by 1e-9 or so for values around 1; "
    "curvature and scales up to a thousand times that leave 1e-6; a forgotten term is never below "
    "1e-3",
)
