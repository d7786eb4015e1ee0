"""Infinite values, and columns that are NaN or missing for the most part."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.schema import Evidence, Finding

FAULT = "data.nonfinite-input"
MOSTLY = 0.5


def look(case: Case) -> Iterator[Finding]:
    for split in case.splits.values():
        infinite = [c for c in split.columns.values() if c.infinite]
        missing = [c for c in split.columns.values() if c.nan > MOSTLY * split.rows]
        if infinite or missing:
            evidence = [
                Evidence(
                    f"{c.name}: {c.infinite:,} infinite values in {split.rows:,} rows",
                    "values",
                    value=c.infinite,
                    expected=0,
                )
                for c in infinite[:6]
            ]
            evidence += [
                Evidence(
                    f"{c.name}: {per_cent(c.nan / split.rows)} NaN",
                    "values",
                    value=c.nan / split.rows,
                    expected=MOSTLY,
                )
                for c in missing[:6]
            ]
            names = [c.name for c in [*infinite, *missing]]
            yield made(
                FAULT,
                "likely" if infinite else "suspected",
                0.85 if infinite else 0.4,
                (
                    f"{', '.join(names[:4])} of {split.role} "
                    f"{'hold infinite values' if infinite else 'are NaN for the most part'}"
                ),
                evidence,
                (
                    "Find the division or logarithm that makes them; replace or drop the rows "
                    "before training."
                ),
                columns=names,
                split=split.role,
            )
