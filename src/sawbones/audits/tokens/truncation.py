"""Texts longer than the model takes: how many, how much of them is cut, and whether the end token goes with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.options import CannotLook
from sawbones.audits.tokens.encoding import encoded, vocabulary_of
from sawbones.schema import Evidence, Finding

FAULT = "pipeline.truncation"


def look(case: Case) -> Iterator[Finding]:
    known = vocabulary_of(case)
    limit = case.options.max_length or known.limit
    parts = encoded(case)
    for part in parts:
        _draw(case, part.split.role, part.lengths, limit)
    if limit is None:
        raise CannotLook("no limit was given and the tokenizer sets none (--max-length N)")
    for part in parts:
        over = part.lengths > limit
        share = float(over.mean()) if len(over) else 0.0
        if share < case.thresholds.truncated:
            continue
        lost = float((part.lengths[over] - limit).sum() / max(1, part.lengths[over].sum()))
        median, high = np.quantile(part.lengths, [0.5, 0.95])
        evidence = [
            Evidence(
                f"{int(over.sum()):,} of {len(over):,} texts are longer than {limit} tokens (half {median:.0f}, 95 % "
                f"{high:.0f}, longest "
                f"{part.lengths.max():,})",
                "lengths",
                value=share,
                expected=case.thresholds.truncated,
            ),
            Evidence(
                f"{per_cent(lost)} of these texts is cut off, from the end: the answer, where it stands last",
                "lengths",
                value=lost,
                expected=0.0,
            ),
        ]
        if part.ends_in_eos >= 0.5 * part.texts:
            evidence.append(
                Evidence(
                    f"the texts end in {known.roles.get('eos')}; cut ones do not, and do not teach the model to stop", "lengths"
                )
            )
        yield made(
            FAULT,
            "likely",
            0.88,
            f"{per_cent(share)} of {part.split.role} is cut at {limit} tokens",
            evidence,
            f"Raise the limit to {int(high)} (95 % of the texts), split long texts, or cut from the front and put the end "
            f"token back.",
            split=part.split.role,
            share=share,
            lost=lost,
            limit=limit,
            threshold=case.thresholds.truncated,
        )


def _draw(case: Case, role: str, lengths: np.ndarray, limit: int | None) -> None:
    if not len(lengths):
        return
    top = max(int(lengths.max()), limit or 0, 1)
    counts, edges = np.histogram(lengths, bins=min(32, top), range=(0, top))
    bins = [f"{a:.0f} … {b:.0f}" for a, b in itertools.pairwise(edges)]
    drawn = next((one for one in case.drawings if one["column"] == "tokens per text" and one["bins"] == bins), None)
    if drawn is None:
        case.drawings.append(
            {"column": "tokens per text", "bins": bins, "names": [role], "counts": [counts.tolist()], "moved": False}
        )
    else:
        drawn["names"].append(role)
        drawn["counts"].append(counts.tolist())
