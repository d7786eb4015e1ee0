"""Shuffle the training data."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import EditRefused, keyword_of, set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "DataLoader", "StatefulDataLoader"):
        if any(keyword_of(call, name) is not None for name in ("sampler", "batch_sampler")):
            continue
        try:
            edit = set_keyword(source, call, "shuffle", "True", 2)
        except EditRefused:
            continue
        yield Change("Shuffle the training data: shuffle=True.", (edit,))
