"""Texts of one split with a near-twin in another: MinHash proposes, the sets of three-word runs
decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.engine.split import Split
from sawbones.audits.minhash import TextIndex, blocks, joined, shingles
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding

FAULT = "evaluation.leak-contamination"
MOST_TEXTS = 100_000  # of the indexed split; the other one may be of any size
LEAST_RUNS = 5  # "thank you very much" is everyone's
BATCH = 8192
MOST_SHOWN = 200  # texts kept to choose the examples from


def look(case: Case) -> Iterator[Finding]:
    columns = (
        [case.options.text]
        if case.options.text
        else [n for n in case.shared if case.first.columns[n].kind == "text"]
    )
    columns = [n for n in columns if n not in case.options.ignore]
    if not columns:
        raise CannotLook("no column of text (name one: --text COLUMN)")
    if len(case.splits) < 2:
        raise CannotLook("one split alone has no twins in another")
    for name in columns:
        for base, other in combinations(case.splits.values(), 2):
            if name in base.columns and name in other.columns:
                yield from _between(case, name, base, other)


def texts_of(case: Case, split: Split, name: str) -> tuple[Any, int]:
    """(Arrow array of the texts, how many rows one of them stands for)."""
    import pyarrow as pa

    table = split.table.select(t=split.table[name].cast("string")).filter(
        ibis_module()._.t.notnull()
    )
    stride = -(-split.rows // MOST_TEXTS)
    chosen = table.filter((table.t.hash() % stride) == 0) if stride > 1 else table
    held = case.session.arrow(chosen).column("t").combine_chunks()
    return held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held, stride


def _between(case: Case, name: str, base: Split, other: Split) -> Iterator[Finding]:
    least = case.thresholds.jaccard
    held, stride = texts_of(case, other, name)
    if not len(held):
        return
    sets = joined([shingles(text, offsets) for _, text, offsets in blocks(held)])
    index = TextIndex(sets)
    best = np.zeros(len(held))
    shown: dict[int, tuple[float, str]] = {}
    whole = base.table.select(t=base.table[name].cast("string")).filter(ibis_module()._.t.notnull())
    for batch in case.session.batches(whole, BATCH):
        column = batch.column(0)
        for first, text, offsets in blocks(column):
            passing, indexed, similar = index.matches(shingles(text, offsets), least)
            for p, i, s in zip(passing, indexed, similar, strict=True):
                if s > best[i] and sets.sizes[i] >= LEAST_RUNS:
                    best[i] = s
                    if i in shown or len(shown) < MOST_SHOWN:
                        shown[int(i)] = (float(s), column[int(first + p)].as_py())
    # Where whole rows were found already, only what is not exactly equal is news.
    known = any(
        key[0] == "overlap" and value[0].shared >= case.thresholds.least_rows
        for key, value in case.found.items()
    )
    hit = (best >= least) & ((best < 1) if known else True)
    count, share = int(hit.sum()), float(hit.mean())
    if share < case.thresholds.near_duplicates or count < case.thresholds.least_rows:
        return
    chosen_pairs = sorted((i for i in shown if hit[i]), key=lambda i: (shown[i][0], i))[:10]
    examples = [
        (
            f"Jaccard {shown[i][0]:.2f}: {other.role} “{case.shown(held[i].as_py())}” / "
            f"{base.role} “{case.shown(shown[i][1])}”"
        )
        for i in chosen_pairs
    ]
    sampled = f", in a sample of one in {stride}" if stride > 1 else ""
    yield made(
        FAULT,
        "proven",
        0.93,
        f"{per_cent(share)} of the texts of {other.role} have a near-twin in {base.role} ({name})",
        [
            Evidence(
                f"{count:,} of {len(held):,} texts of {other.role} have one in "
                f"{base.role} with Jaccard {least:g} or more "
                f"over runs of "
                f"three words{sampled}; {int((best[hit] < 1).sum()):,} are not equal word for word",
                "MinHash, verified",
                value=share,
                expected=0.0,
            ),
            *(Evidence(text, "texts") for text in examples[:3]),
        ],
        (
            "Remove near-duplicates over both splits before splitting; keep one of each "
            f"cluster on one side ({name})."
        ),
        column=name,
        splits=[base.role, other.role],
        share=share,
        threshold=least,
        examples=examples,
    )
