"""As many rows in the table as the largest id needs."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.crashes import larger_table
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for evidence in case.finding.evidence:
        if evidence.value is not None and evidence.expected is not None and evidence.value > 0:
            yield from larger_table(case, int(evidence.expected) + 1, int(evidence.value) + 1)
            return
