"""Rows that are there twice, rows without a single value, and rows that could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.overlap import doubled_examples, repeats
from sawbones.schema import Evidence, Finding

FAULT = "data.degenerate-samples"


def look(case: Case) -> Iterator[Finding]:
    limits = case.thresholds
    for split in case.splits.values():
        if split.rejected:
            share = split.rejected / (split.rows + split.rejected)
            yield made(
                FAULT,
                "likely",
                0.9,
                f"{split.rejected:,} rows of {split.role} could not be read",
                [
                    Evidence(
                        (
                            f"{split.rejected:,} rows ({per_cent(share)}) have another number "
                            "of fields or values of another type"
                        ),
                        "CSV",
                        value=share,
                        expected=0.0,
                    )
                ],
                f"Write {split.origin} again with quoted fields, or repair these rows.",
                split=split.role,
                rows=split.rejected,
            )
        empty = _empty_rows(case, list(split.columns), split.role)
        if empty >= max(limits.least_rows, limits.empty * split.rows):
            yield made(
                FAULT,
                "likely",
                0.85,
                f"{empty:,} rows of {split.role} have no value at all",
                [
                    Evidence(
                        f"{empty:,} of {split.rows:,} rows are missing in every column",
                        "missing values",
                        value=empty / split.rows,
                        expected=limits.empty,
                    )
                ],
                f"Drop them: they teach nothing ({split.role}.dropna(how='all')).",
                split=split.role,
                rows=empty,
            )
        found = repeats(case, split)
        share = found.doubled / split.rows
        if (
            found.telling
            and found.doubled >= limits.least_rows
            and share >= limits.duplicates
            and share > empty / split.rows
        ):
            shown = doubled_examples(case, split, conflicting=False)
            yield made(
                FAULT,
                "likely",
                0.85,
                f"{per_cent(share)} of {split.role} is there twice",
                [
                    Evidence(
                        (
                            f"{found.doubled:,} of {split.rows:,} rows repeat another one in "
                            f"{len(case.key_columns)} columns"
                        ),
                        "row hashes",
                        value=share,
                        expected=limits.duplicates,
                    ),
                    *(Evidence(text, "rows") for text in shown[:3]),
                ],
                "Drop duplicates before splitting, or weigh rows on purpose.",
                split=split.role,
                share=share,
                examples=shown,
            )


def _empty_rows(case: Case, names: list[str], role: str) -> int:
    split = case.splits[role]
    some = [n for n in names if split.columns[n].missing == 0]
    if some:
        return 0
    ibis = ibis_module()
    nothing = ibis.and_(*(split.table[n].isnull() for n in names))
    return int(case.session.rows(split.table.aggregate(n=nothing.cast("int64").sum()))[0]["n"] or 0)
