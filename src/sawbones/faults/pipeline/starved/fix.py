"""As many workers as the loop has to wait for, as far as there are cores."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from sawbones.fixing.editing import set_keyword
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    share = next((e.value for e in case.finding.evidence if e.value is not None), None)
    if share is None or not 0 < share < 1:
        return
    workers = max(1, min(math.ceil(share / (1 - share)), os.cpu_count() or 1))
    for source, call in calls_near(case, "DataLoader"):
        yield Change(
            f"Load in {workers} processes of their own.",
            (set_keyword(source, call, "num_workers", str(workers)),),
        )
        return
