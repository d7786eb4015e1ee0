"""Samples of one part that are in another, and from when on they are more than chance: for data
sets and for what a run read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

WHOLE = 0.9  # so many shared samples, and the two parts are one
UNSEEN_PAIRS = 3.0  # equal ones that may be missing by chance (rule of three)


def shared_of(samples: Iterable[int], known: Collection[int]) -> tuple[int, int]:
    """(samples that are known, samples), each distinct fingerprint once."""
    distinct = set(samples)
    return len(distinct & known) if isinstance(known, (set, frozenset)) else sum(
        s in known for s in distinct
    ), len(distinct)


def repeat_share(prints: Sequence[int]) -> float:
    """Share of samples that repeat an earlier one of the same part."""
    return 1.0 - len(set(prints)) / len(prints) if prints else 0.0


def chance_of_match(singles: float, rows: float) -> float:
    """Good and Turing: how likely a further row of the same source equals one that is there
    already.
    """
    return 1 - singles / rows if rows else 0.0


def chance_of_pairs(parts: Iterable[Sequence[int]], num_known: int) -> float:
    """How likely a row equals one of so many known ones without being its copy: at most as often,
    pair by pair, as rows of one part equal each other.
    """
    equal, pairs, most = 0.0, 0.0, 0.0
    for prints in parts:
        here = sum(n * (n - 1) / 2 for n in Counter(prints).values())
        of = len(prints) * (len(prints) - 1) / 2
        equal, pairs = equal + here, pairs + of
        most = max(most, here / of if of else 0.0)
    together = (equal + UNSEEN_PAIRS) / pairs if pairs else 1.0
    return min(1.0, max(together, most) * num_known)


def least_share(
    limit: float, chance: float, total: int, telling: bool, times: float = 1.0
) -> float:
    """The share from which shared samples are copies.

    Where samples have so many possible forms that equal ones are `telling`, the limit itself. Else
    what would be met by chance is added, with its noise; `times` asks for a multiple of it where
    the chance is only estimated from few samples.
    """
    if telling:
        return limit
    noise = (
        4 * math.sqrt(max(chance, 1 / max(1, total)) * max(0.0, 1 - chance) / max(1, total)) + 0.02
    )
    return max(limit + chance + noise, times * chance)


def judged(shared: int, total: int, least_count: float, least: float, whole: float = WHOLE) -> str:
    """none, some, or whole: nothing was held out."""
    if not total or shared < least_count or shared < least * total:
        return "none"
    return "whole" if shared >= whole * total else "some"
