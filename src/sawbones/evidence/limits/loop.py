"""Limits of the faults of the training loop."""

from __future__ import annotations

from sawbones.evidence.limit import Limit

UNCLEARED_PARAMETERS = Limit(
    0.5,
    "share of an optimizer's parameters",
    "half: a loop that clears clears all of them; heads that are idle for a while may keep theirs",
)
UNCLEARED_STEPS = Limit(
    0.9,
    "share of steps",
    "accumulation clears at every n-th step, n >= 2, so its share is at most one half",
)
GRAPHS_KEPT = Limit(
    0.8,
    "share of the graphs made",
    "a graph lives until its loss is rebound: healthy loops keep one or two of hundreds",
)
GRAPHS_RELEASED = Limit(
    0.5,
    "share of the most that were kept",
    "half of them gone later: they were collected for a purpose and let go",
)
GRAPH_SITES = Limit(
    0.3,
    "share of the graphs made",
    "a line that made fewer than a third of them is not the loop's own; ranks lines only",
)
