"""Texts that are empty, there twice, or of which the tokenizer leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.tokens.encoding import encoded
from sawbones.schema import Evidence, Finding

FAULT = "data.degenerate-samples"


def look(case: Case) -> Iterator[Finding]:
    limits = case.thresholds
    for part in encoded(case):
        role = part.split.role
        kinds = [
            (
                "are empty",
                part.empty,
                part.texts,
                limits.empty,
                "Drop empty texts before training.",
            ),
            (
                "are there twice",
                part.doubled - max(0, part.empty * part.stride - 1),
                part.split.rows,
                limits.duplicates,
                "Drop duplicates before splitting.",
            ),
            (
                "give no token at all",
                part.no_token,
                part.texts,
                limits.empty,
                "Look at the normaliser: it removes everything these texts hold.",
            ),
        ]
        for what, count, total, limit, fix in kinds:
            share = count / max(1, total)
            if count >= limits.least_rows and share >= limit:
                yield made(
                    FAULT,
                    "likely",
                    0.85,
                    f"{per_cent(share)} of the texts of {role} {what}",
                    [
                        Evidence(
                            f"{count:,} of {total:,} texts", "texts", value=share, expected=limit
                        )
                    ],
                    fix,
                    split=role,
                    share=share,
                )
