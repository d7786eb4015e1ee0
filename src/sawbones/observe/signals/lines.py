"""What a script says of its training: the lines with a number that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_MAX_LINES = 1000
_LONGEST = 300


class Lines:
    """`record`: step and line. Of a long run every second one, every fourth, and so on."""

    def __init__(self) -> None:
        self.record: list[tuple[int, str]] = []
        self._every = 1
        self._count = 0

    def printed(self, step: int, values: Sequence[Any]) -> None:
        said = [str(v) for v in values if isinstance(v, (str, int, float, np.number))]
        for line in " ".join(said).splitlines():
            if not any(c.isdigit() for c in line):
                continue
            self._count += 1
            if self._count % self._every:
                continue
            if len(self.record) >= _MAX_LINES:
                del self.record[::2]
                self._every *= 2
            self.record.append((step, line[:_LONGEST]))
