"""What a run wanted of the world outside and was not given: one line each, with the flag that
allows it.
"""

from __future__ import annotations

from sawbones.isolation.held_back import ALLOWED_BY
from sawbones.schema import Run

_WORDS = {
    "network": "a connection to {}",
    "names": "a question to the name server {}",
    "subprocess": "starting {}",
    "files": "changing {}",
    "signals": "a signal to process {}",
    "memory": "shared memory of other processes ({})",
    "system": "writing to {}",
}


def held_back(run: Run) -> tuple[str, ...]:
    """Empty where nothing was. A run that died with some of it is inconclusive, not crashed."""
    lines = []
    for row in run.held_back:
        what = _WORDS[row.what].format(row.target)
        at = f" ({row.site})" if row.site else ""
        flag = ALLOWED_BY[row.what]
        how = f"to allow it: {flag.format(row.target)}" if flag else "no flag allows it"
        lines.append(f"{what}{at} was held back; {how}")
    return tuple(lines)
