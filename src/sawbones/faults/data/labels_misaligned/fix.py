"""Which order is the right one, a person decides; of a model that answers in another order than its
examples, the finding says it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Change, Decide

_CHOICES = (
    "Decide which order is the right one: shuffle inputs and labels by one and the same index, or "
    "neither. If the file itself is out of order it has to be made again: no change of the script "
    "finds the labels back."
)


def fix(case: Case) -> Iterator[Change | Decide]:
    if all(evidence.signal != "probes" for evidence in case.finding.evidence):
        yield Decide(_CHOICES)
