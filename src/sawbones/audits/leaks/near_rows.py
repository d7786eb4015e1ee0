"""Rows of one split that nearly repeat rows of another: rounded, noised, or with a column or two
changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.near_rows import grid, near_rows
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding
from sawbones.stats.overlaps import judged, least_share

FAULT = "evaluation.leak-contamination"


def look(case: Case) -> Iterator[Finding]:
    if len(case.splits) < 2:
        raise CannotLook("one split alone has no twins in another")
    limits = case.thresholds
    for base, other in combinations(case.splits.values(), 2):
        cells = grid(case, base, other)
        found = near_rows(case, cells, base, other)
        if found.stride > 1:
            case.notes.append(
                f"near copies of rows were looked for with {found.rows:,} of the "
                f"{other.rows:,} rows of {other.role}, "
                f"one in {found.stride}, against all of {base.role}"
            )
        if judged(found.count, found.rows, limits.least_rows, limits.near_duplicates) == "none":
            continue
        # Rows of one customer or one sensor are alike by nature: then they are so within the
        # training part as well.
        own = near_rows(case, cells, base, base)
        least = least_share(limits.near_duplicates, own.share, found.rows, own.count == 0)
        if judged(found.count, found.rows, limits.least_rows, least) == "none":
            case.notes.append(
                f"{per_cent(found.share)} of the rows of {other.role} nearly repeat one "
                f"of {base.role}, and "
                f"{per_cent(own.share)} of {base.role} do so within it: no sign of copies"
            )
            continue
        shown = [
            f"Jaccard {s:.2f}: {base.role}: {case.row_text(a)}  ~  {other.role}: {case.row_text(b)}"
            for a, b, s in found.pairs
        ]
        sampled = f", in a sample of one in {found.stride}" if found.stride > 1 else ""
        yield made(
            FAULT,
            "likely",
            0.85,
            f"{per_cent(found.share)} of {other.role} nearly repeats rows of {base.role}",
            [
                Evidence(
                    f"{found.count:,} of {found.rows:,} rows of {other.role} agree with "
                    f"one of {base.role} in at least "
                    f"{len(cells.names) - cells.most} of {len(cells.names)} columns, "
                    "numbers to a twentieth of their spread"
                    f"{sampled}; {own.count:,} of {own.rows:,} do so within {base.role}",
                    "cells, verified",
                    value=found.share,
                    expected=own.share,
                ),
                *(Evidence(text, "rows") for text in shown[:3]),
            ],
            (
                "Remove rows that were made from others (noise, rounding, edits) before "
                "splitting, or keep each cluster on one side."
            ),
            splits=[base.role, other.role],
            share=found.share,
            threshold=limits.jaccard,
            examples=shown,
        )
