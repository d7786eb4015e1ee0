"""Texts of one data set that are nearly the same: MinHash proposes, the sets of three-word runs
decide.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.leaks.near_duplicates import LEAST_RUNS, texts_of
from sawbones.audits.minhash import TextIndex, blocks, joined, shingles
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding

FAULT = "data.degenerate-samples"


def look(case: Case) -> Iterator[Finding]:
    split = case.first
    columns = [n for n in split.of_kind("text") if n not in case.options.ignore]
    if not columns:
        raise CannotLook("no column of long texts")
    for name in columns:
        texts, stride = texts_of(case, split, name)
        sets = joined([shingles(text, offsets) for _, text, offsets in blocks(texts)])
        later, earlier, similar = TextIndex(sets).within(case.thresholds.jaccard)
        # Equal ones are the affair of the row hashes.
        near = (similar < 1) & (sets.sizes[later] >= LEAST_RUNS)
        count = len(np.unique(later[near]))
        share = count / max(1, len(texts))
        if share < case.thresholds.duplicates or count < case.thresholds.least_rows:
            continue
        shown = [
            (
                f"Jaccard {s:.2f}: “{case.shown(texts[int(a)].as_py())}” / "
                f"“{case.shown(texts[int(b)].as_py())}”"
            )
            for a, b, s in zip(
                earlier[near][:10], later[near][:10], similar[near][:10], strict=True
            )
        ]
        sampled = f", in a sample of one in {stride}" if stride > 1 else ""
        yield made(
            FAULT,
            "likely",
            0.8,
            f"{per_cent(share)} of the texts of {split.role} nearly repeat another one ({name})",
            [
                Evidence(
                    (
                        f"{count:,} of {len(texts):,} texts have a twin of Jaccard "
                        f"{case.thresholds.jaccard:g} or more{sampled}"
                    ),
                    "MinHash, verified",
                    value=share,
                    expected=case.thresholds.duplicates,
                ),
                *(Evidence(text, "texts") for text in shown[:3]),
            ],
            f"Keep one text of each cluster, and do so before splitting ({name}).",
            column=name,
            split=split.role,
            share=share,
            examples=shown,
        )
