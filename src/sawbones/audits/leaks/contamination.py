"""Records of one split that are in another: exact copies by hash; from nine tenths on the split is
not one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.options import CannotLook
from sawbones.audits.overlap import overlap, pairs, repeats
from sawbones.schema import Evidence, Finding
from sawbones.stats.overlaps import judged, least_share

FAULT = "evaluation.leak-contamination"
ALSO = ("evaluation.wrong-split",)


def look(case: Case) -> Iterator[Finding]:
    if len(case.splits) < 2:
        raise CannotLook("one split alone cannot be contaminated")
    blind = []
    for base, other in combinations(case.splits.values(), 2):
        rows = repeats(case, base)
        found, hashes = overlap(case, base, other)
        limits = case.thresholds
        if (
            not rows.telling
            and rows.chance > 0.5
            and found.share - rows.chance < limits.wrong_split
        ):
            blind.append(
                f"rows of {base.role} have so few forms ({rows.distinct:,} in "
                f"{rows.rows:,}) that equal ones prove nothing"
            )
            continue
        # A row that is as common as this within its own split would be met in the other one anyway.
        least = least_share(limits.contamination, rows.chance, other.rows, rows.telling)
        said = judged(found.shared, found.rows, limits.least_rows, least, limits.wrong_split)
        if said == "none":
            continue
        whole = said == "whole"
        evidence = [
            Evidence(
                f"{found.shared:,} of {found.rows:,} rows of {other.role} are in "
                f"{base.role} too ({per_cent(found.share)}); "
                f"compared by {len(case.key_columns)} columns",
                "row hashes",
                value=found.share,
                expected=rows.chance,
            )
        ]
        if found.other_label:
            evidence.append(
                Evidence(
                    f"{found.other_label:,} of them have another label there",
                    "row hashes",
                    value=found.other_label,
                )
            )
        shown = pairs(case, base, other, hashes)
        evidence += [Evidence(text, "rows") for text in shown[:3]]
        yield made(
            ALSO[0] if whole else FAULT,
            "proven" if rows.telling else "likely",
            0.97 if rows.telling else 0.8,
            f"{other.role} is {base.role} again: {per_cent(found.share)} of its rows are the same"
            if whole
            else f"{per_cent(found.share)} of {other.role} is in {base.role} too",
            evidence,
            f"Read {other.role} from data that {base.role} does not hold."
            if whole
            else (
                f"Remove the shared rows from {base.role}, or drop duplicates before "
                "splitting, and score again."
            ),
            splits=[base.role, other.role],
            share=found.share,
            threshold=limits.contamination,
            examples=shown,
        )
    if blind:
        raise CannotLook("; ".join(blind))
