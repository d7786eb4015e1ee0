"""How often findings were right on the first try: the lower end of the interval, with its n.

Right means: on a program that its author wrote without sight of the checks, the finding named the
fault that was there. `first_tries.json` holds the counts by kind of reading, with the rounds that
they come from; a new round is added there before anything is mended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sawbones.stats.distributions import wilson

# Under this many first tries of a kind the pooled totals of all kinds serve: the interval of a
# share from fewer is wider than 0.4, which tells nobody anything.
MIN_TRIES = 20
_TABLE = Path(__file__).with_name("first_tries.json")


@dataclass(frozen=True)
class Confidence:
    lower: float
    n: int
    pooled: bool


def confidence_of(kind: str, status: str) -> Confidence:
    if status == "suspected":
        return Confidence(0.0, 0, False)  # suspicions were not counted: nothing is claimed
    tries = _table()
    right, total = tries.get(kind, (0, 0))
    pooled = total < MIN_TRIES
    if pooled:
        right, total = tries["any"]
    return Confidence(round(wilson(right, total)[0], 2), int(total), pooled)


@cache
def _table() -> dict[str, tuple[int, int]]:
    rows = json.loads(_TABLE.read_text(encoding="utf-8"))["tries"]
    return {name: (int(row[0]), int(row[1])) for name, row in rows.items()}
