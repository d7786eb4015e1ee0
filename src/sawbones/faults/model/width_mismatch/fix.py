"""The change that the line which died asks for."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.fixing.crashes import written_change
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    yield from written_change(case)
