"""Readings of token rows: what they begin with and end in, and whether targets are their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sawbones.schema import Run


def sample_rows(run: Run) -> Mapping[str, Any] | None:
    found = (run.facts.get("samples") or {}).get("rows")
    return found if isinstance(found, Mapping) else None


def ids_of(counts: Mapping[str, int] | None) -> tuple[dict[str, int], int, float]:
    """(rows by their first or last id, all rows, the share of the commonest id). The commonest ids
    are counted one by one, the others only in the sum.
    """
    ids = dict(counts or {})
    total = ids.pop("all", 0)
    return ids, total, max(ids.values(), default=0) / max(total, 1)


def copied_share(targets: Mapping[str, Any]) -> float:
    """Share of the targets that are tokens of the input, at the same place or at the next."""
    return max(float(targets.get(name) or 0) for name in ("copies", "copies_here"))
