"""Let the wrapper look for parameters without a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "DistributedDataParallel", "DDP"):
        yield Change(
            "Let the wrapper look for parameters without a gradient.",
            (set_keyword(source, call, "find_unused_parameters", "True"),),
        )
        return
