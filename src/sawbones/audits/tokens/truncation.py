"""Texts longer than the model takes: how many, how much of them is cut, and whether answer and end
token go with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.options import CannotLook
from sawbones.audits.tokens.encoding import Encoded, encoded, vocabulary_of
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
        answers = _answers(part, limit, known.from_left)
        gone = answers.gone / max(1, len(over)) if answers else 0.0
        if share < case.thresholds.truncated and gone < case.thresholds.lost_answer:
            continue
        yield _finding(case, part, limit, over, answers)


@dataclass(frozen=True, slots=True)
class Answers:
    """What cutting does to the answers: how many lose some of their tokens, how many all, and what
    share of the tokens goes.
    """

    hurt: int
    gone: int
    lost: float


def _answers(part: Encoded, limit: int, from_left: bool) -> Answers | None:
    """The answer stands last: a cut at the end takes it first, a cut at the front last."""
    if not len(part.answers):
        return None
    beyond = part.lengths - limit
    end = (part.lengths > 0) & (
        part.ends_in_eos >= 0.5 * part.texts
    )  # the end token stands behind the answer
    cut = (
        np.maximum(0, part.answers - limit)
        if from_left
        else np.maximum(0, beyond - end.astype(np.int64))
    )
    cut = np.minimum(cut, part.answers)
    hurt = cut > 0
    return Answers(
        int(hurt.sum()),
        int((hurt & (cut == part.answers)).sum()),
        float(cut.sum() / max(1, part.answers.sum())),
    )


def _finding(
    case: Case, part: Encoded, limit: int, over: np.ndarray, answers: Answers | None
) -> Finding:
    known = vocabulary_of(case)
    share = float(over.mean())
    lost = float((part.lengths[over] - limit).sum() / max(1, part.lengths[over].sum()))
    median, high = np.quantile(part.lengths, [0.5, 0.95])
    side = "front" if known.from_left else "end"
    where = (
        "the answer, where it stands last"
        if answers is None and not known.from_left
        else f"from the {side}"
    )
    evidence = [
        Evidence(
            f"{int(over.sum()):,} of {len(over):,} texts are longer than {limit} tokens "
            f"(half {median:.0f}, 95 % {high:.0f}, "
            f"longest {part.lengths.max():,})",
            "lengths",
            value=share,
            expected=case.thresholds.truncated,
        ),
        Evidence(
            f"{per_cent(lost)} of these texts is cut off: {where}",
            "lengths",
            value=lost,
            expected=0.0,
        ),
    ]
    if answers is not None:
        evidence.append(
            Evidence(
                f"{answers.hurt:,} of {len(over):,} answers ({case.options.answer}) are "
                f"cut, {answers.gone:,} of them to nothing; "
                f"{per_cent(answers.lost)} of all answer tokens are lost",
                "answers",
                value=answers.gone / max(1, len(over)),
                expected=case.thresholds.lost_answer,
            )
        )
    if part.ends_in_eos >= 0.5 * part.texts and not known.from_left:
        evidence.append(
            Evidence(
                (
                    f"{int(over.sum()):,} texts lose {known.roles.get('eos')} with their end "
                    "and do not teach the model to stop"
                ),
                "lengths",
                value=share,
                expected=0.0,
            )
        )
    gone = answers is not None and answers.gone / max(1, len(over)) >= case.thresholds.lost_answer
    title = f"{per_cent(share)} of {part.split.role} is cut at {limit} tokens"
    return made(
        FAULT,
        "likely",
        0.9 if gone else 0.88,
        f"{title}, and {answers.gone:,} answers are lost"
        if gone and answers is not None
        else title,
        evidence,
        f"Raise the limit to {int(high)} (95 % of the texts), split long texts, or cut "
        "the prompt from the front and keep answer "
        f"and end token.",
        split=part.split.role,
        share=share,
        lost=lost,
        limit=limit,
        threshold=case.thresholds.truncated,
        answers_cut=answers.hurt if answers else None,
        answers_lost=answers.gone if answers else None,
        ends_lost=int(over.sum())
        if part.ends_in_eos >= 0.5 * part.texts and not known.from_left
        else 0,
    )


def _draw(case: Case, role: str, lengths: np.ndarray, limit: int | None) -> None:
    if not len(lengths):
        return
    top = max(int(lengths.max()), limit or 0, 1)
    counts, edges = np.histogram(lengths, bins=min(32, top), range=(0, top))
    bins = [f"{a:.0f} … {b:.0f}" for a, b in itertools.pairwise(edges)]
    drawn = next(
        (
            one
            for one in case.drawings
            if one["column"] == "tokens per text" and one["bins"] == bins
        ),
        None,
    )
    if drawn is None:
        case.drawings.append(
            {
                "column": "tokens per text",
                "bins": bins,
                "names": [role],
                "counts": [counts.tolist()],
                "moved": False,
            }
        )
    else:
        drawn["names"].append(role)
        drawn["counts"].append(counts.tolist())
