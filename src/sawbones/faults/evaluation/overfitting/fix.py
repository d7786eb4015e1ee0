"""How to hold a model back that memorises, a person decides."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.recipes import Case, Decide

CHOICES = (
    "Decide how to hold it back: stop at the best evaluation (costs nothing, and no more is "
    "learned); more data or augmentation (work, and the only way to a better model); dropout or "
    "weight decay (two settings to search); a smaller model (less to memorise, and less to learn)."
)


def fix(case: Case) -> Iterator[Decide]:
    yield Decide(CHOICES)
