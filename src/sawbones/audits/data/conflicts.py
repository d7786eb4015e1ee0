"""Equal features with unequal labels: at least one of the labels is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.options import CannotLook
from sawbones.audits.overlap import doubled_examples, repeats
from sawbones.schema import Evidence, Finding

FAULT = "data.labels-misaligned"


def look(case: Case) -> Iterator[Finding]:
    case.need_label(case.first)
    blind = []
    for split in case.splits.values():
        if case.options.label not in split.columns:
            continue
        found = repeats(case, split)
        if not found.telling:
            blind.append(
                f"rows of {split.role} have so few forms ({found.distinct:,} in "
                f"{found.rows:,}) that one form may have "
                f"several labels"
            )
            continue
        share = found.conflicting / split.rows
        if share < case.thresholds.conflicts or found.conflicting < case.thresholds.least_rows:
            continue
        shown = doubled_examples(case, split, conflicting=True)
        yield made(
            FAULT,
            "likely",
            0.85,
            f"{found.conflicting:,} rows of {split.role} have equal features and different labels",
            [
                Evidence(
                    f"{found.conflicting:,} of {split.rows:,} rows ({per_cent(share)}) "
                    "equal another row whose "
                    f"{case.options.label} differs",
                    "row hashes",
                    value=share,
                    expected=case.thresholds.conflicts,
                ),
                *(Evidence(text, "rows") for text in shown[:4]),
            ],
            "Look at these rows by hand: settle the label, or drop both. No model can fit them.",
            column=case.options.label,
            split=split.role,
            share=share,
            examples=shown,
        )
    if blind:
        raise CannotLook("; ".join(blind))
