"""Hand the raw scores to the loss: the softmax in front of it goes."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.expressions import removed_activation
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for text, edits in removed_activation(
        case, ("softmax", "log_softmax"), ("Softmax", "LogSoftmax")
    ):
        yield Change(f"Hand the raw scores to the loss: leave {text} out.", edits)
