"""Hand the raw scores to the loss: the sigmoid in front of it goes."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.expressions import removed_activation
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for text, edits in removed_activation(case, ("sigmoid", "expit"), ("Sigmoid",)):
        yield Change(f"Hand the raw scores to the loss: leave {text} out.", edits)
