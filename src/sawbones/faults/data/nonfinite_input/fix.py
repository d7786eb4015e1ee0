"""What a value that is not finite stands for, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide what the value stands for: a missing measurement (fill in the mean of the training rows "
    "and add a column that says so), a row that is no use (drop it; rows are lost), or a mistake "
    "on the way (mend it there; torch.nan_to_num would hide it)."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)
