"""The shape of the loss curve that goes with a symptom: as a line of blocks for a terminal, and as
numbers for a picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

STEPS = range(60)
# Height of the training curve at each step, 0 to 1; a second curve is the evaluation. A curve that
# ends early has turned NaN.
CURVES: dict[str, tuple[list[float], ...]] = {
    "non-finite": ([0.8 * math.exp(-s / 15) + 0.1 for s in STEPS[:30]],),
    "diverges": ([0.25 + 0.7 * (s / 59) ** 2 for s in STEPS],),
    "does-not-learn": ([0.6 + 0.04 * math.sin(2.1 * s) for s in STEPS],),
    "does-not-generalise": (
        [0.75 * math.exp(-s / 15) + 0.08 for s in STEPS],
        [0.8 + 0.03 * math.sin(1.3 * s) for s in STEPS],
    ),
    "learns-slowly": ([0.85 - 0.15 * s / 59 + 0.02 * math.sin(2.1 * s) for s in STEPS],),
    "spikes": ([0.6 * math.exp(-s / 20) + 0.1 + 0.7 * (s in (24, 44)) for s in STEPS],),
    "saw-tooth": ([0.3 + 0.45 * (s % 15) / 15 for s in STEPS],),
    "plateau-then-jump": (
        [0.85 if s < 30 else 0.1 + 0.75 * math.exp(-(s - 30) / 4) for s in STEPS],
    ),
    "overfits": (
        [0.8 * math.exp(-s / 15) + 0.03 for s in STEPS],
        [0.5 * math.exp(-s / 8) + 0.3 + 0.35 * (s / 59) ** 1.5 for s in STEPS],
    ),
    "too-good": ([0.9 * math.exp(-s / 1.5) + 0.02 for s in STEPS],),
    "evaluation-disagrees": (
        [0.7 * math.exp(-s / 20) + 0.08 for s in STEPS],
        [0.6 * math.exp(-s / 20) + 0.38 for s in STEPS],
    ),
}
BLOCKS = "▁▂▃▄▅▆▇█"
NAMES = ("training  ", "evaluation")


def blocks(heights: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> str:
    """One character per value."""
    span = (highest - lowest) or 1.0
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[min(top, max(0, round((h - lowest) / span * top)))] for h in heights)


def sketch(symptom: str) -> str:
    """The curves as indented lines; empty where the symptom has no shape."""
    lines = []
    for name, curve in zip(NAMES, CURVES.get(symptom, ()), strict=False):
        ended = " NaN" if len(curve) < len(STEPS) else ""
        lines.append(f"    {name}  {blocks(curve)}{ended}")
    return "\n".join(lines)
