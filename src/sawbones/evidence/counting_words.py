"""`1 layers` -> `1 layer`: texts of checks are made of counts, and some counts are one."""

from __future__ import annotations

import re

_NOUNS = {
    **{name: name[:-1] for name in ("layers", "steps", "samples", "rows", "columns", "modules")},
    **{name: name[:-1] for name in ("tensors", "parameters", "positions", "examples", "workers")},
    **{name: name[:-1] for name in ("ranks", "weights", "values", "outputs", "tokens", "targets")},
    **{name: name[:-1] for name in ("epochs", "calls", "optimizers", "evaluations", "units")},
    **{name: name[:-2] for name in ("batches", "classes", "passes", "losses")},
}
# "1" alone: neither the end of a number, nor the end of "1 to 3" or "1 of 5".
_ONE = re.compile(
    rf"(?<![\w.,-])1 ((?:attention|later|more|training|evaluated) )?({'|'.join(_NOUNS)})\b"
)


def singular(text: str) -> str:
    return _ONE.sub(lambda found: f"1 {found[1] or ''}{_NOUNS[found[2]]}", text)
