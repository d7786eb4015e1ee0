"""The factor that a gradient scaler has put on a loss."""

from __future__ import annotations

from sawbones.stats.protocol import Turn


def scale_of(turn: Turn) -> float:
    """At this step, by the last loss that was scaled; 1 where none was."""
    known = [e.data.get("scale") for e in turn.of("scale")]
    return float(known[-1]) if known and known[-1] else 1.0
