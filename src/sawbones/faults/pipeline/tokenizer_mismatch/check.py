"""Text that comes back different: tables for encoding and decoding that disagree, or a vocabulary of its own for each split

## What it sees
Vocabularies among the user's variables, found by value. Fires when a table for decoding holds the
same entries as a vocabulary at other ids, or when two vocabularies share their entries but number
them differently and the ids of validation are distributed unlike those of training although their
frequencies by rank agree, or validation is answered by chance while training is answered well. Also
when one id that is next to absent from training makes up 8 % and more of the validation tokens,
padding left out; and, with no vocabulary in sight, when more than 12 % of the tokens have moved to
other ids while the frequencies, sorted, differ by less than an eighth of that. Earliest at step 1.

## Why it matters
The model is evaluated, sampled or served in another language than it was trained in.

## Looks like
Training loss falls, validation is worse than chance; or a good loss and samples that are gibberish.

## Example
    train_vocab, val_vocab = build_vocab(train_text), build_vocab(val_text)

## Use instead
    vocab = build_vocab(train_text)

## Confirm it
Nothing is left to confirm: ids are compared entry by entry.

## False alarms
Source and target languages have vocabularies of their own: their ids are only judged against each
other when training and validation ids differ in the way a renumbering makes them. Tables shifted by
a constant (special tokens in front) and plain lists of words, which need not be tables at all, are
not counted. Validation texts on another topic bring ids that training does not have, or frequencies
that differ when sorted as well; of short texts (under 4000 tokens) no frequencies are compared. A
second vocabulary that only finds rows of pretrained vectors leaves validation answered as training
is.

## References
Vocabularies rebuilt from a set at each start, per split, or at serving time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import feeding_sites, marked_lines, outside_of_models
from sawbones.stats.evaluations import hits
from sawbones.stats.loss_calls import places

NEEDS = ("steps",)
EXPLAINS = (
    "evaluation.overfitting",
    "evaluation.collapsed-prediction",
    "evaluation.leak-contamination",
    "loop.nondeterminism",
)
EXPERIMENT = None
MIN_TOKENS = 4000
MOVED = (
    0.12  # part of all tokens: that of two halves of one text is far smaller when there are so many
)


def check(run: Run) -> Iterator[Finding]:
    found = run.facts.get("vocabularies") or {}
    for pair in found.get("pairs") or ():
        share = pair["moved"] / max(pair["shared"], 1)
        if share < 0.1 or pair["moved"] < 2 or pair.get("shifted") or pair["kind"] == "list":
            continue
        if pair["kind"] == "decoding":
            text = (
                f"{pair['moved']} of {pair['shared']} entries decode to something else, e.g. "
                f"{_example(pair)}"
            )
            yield _finding(
                run, pair, "decode(encode(text)) is not text: the two tables disagree", text, share
            )
            return
        shift = (run.facts.get("samples") or {}).get("token_shift") or {}
        if shift.get("distance", 0.0) > 0.2 and shift["by_rank"] < 0.4 * shift["distance"]:
            text = (
                f"{pair['moved']} of {pair['shared']} shared entries moved, e.g. {_example(pair)}; ids of validation and training "
                f"overlap by {1 - shift['distance']:.0%} only, sorted by frequency by {1 - shift['by_rank']:.0%}"
            )
            yield _finding(
                run, pair, "Training and validation number their tokens differently", text, share
            )
            return
        if (missed := _answers_by_chance(run)) is not None:
            text = (
                f"{pair['moved']} of {pair['shared']} shared entries moved, e.g. "
                f"{_example(pair)}; {missed}"
            )
            yield _finding(
                run, pair, "Training and validation number their tokens differently", text, share
            )
            return
    yield from list(_renumbered(run)) or _unknown(run)


def _answers_by_chance(run: Run) -> str | None:
    """What was learned is lost on validation to the last bit: by-heart learning leaves more than
    that of a task so well learned.
    """
    found, told = hits(run), (run.facts.get("samples") or {}).get("predictions") or {}
    rows = list((told.get("classes") or {}).values())
    asked = sum(row[0] for row in rows)
    if found is None or found[2] < 150 or asked < 150 or told.get("maps"):
        return None
    right, commonest = sum(row[1] for row in rows) / asked, max(row[0] for row in rows) / asked
    held_out, chance, number = found
    if right < 0.85 or commonest > 0.75 or held_out > chance + 0.05 + 1.0 / math.sqrt(number):
        return None
    return (
        f"{right:.0%} of the answers are right in training, {held_out:.0%} in validation, "
        f"{chance:.0%} for the commonest answer"
    )


def _renumbered(run: Run) -> Iterator[Finding]:
    """Validation has the frequencies of training, rank by rank, and other ids have them: only a
    renumbering does that.
    """
    shift = (run.facts.get("samples") or {}).get("token_shift") or {}
    if min(shift.get("train", 0), shift.get("eval", 0)) < MIN_TOKENS or shift["distance"] < MOVED:
        return
    number, before, after = shift.get("newcomer") or (0, 0.0, 0.0)
    if shift["by_rank"] > 0.12 * shift["distance"] or before < 0.1 * after:
        # texts on another topic, or of another kind: their ids are new to training, or spread in
        # another way
        return
    numbered = outside_of_models(run, marked_lines(run, "vocabulary"))
    text = (
        f"ids of validation and training overlap by {1 - shift['distance']:.1%}, and by {1 - shift['by_rank']:.1%} when both are "
        f"sorted by frequency; id {int(number)} goes from {before:.2%} to {after:.2%}"
    )
    yield Finding(
        "pipeline.tokenizer-mismatch",
        "likely",
        0.88,
        "Training and validation number their tokens differently",
        places(*numbered[:2], *feeding_sites(run))[:4],
        (Evidence(text, "samples", value=shift["distance"], expected=shift["by_rank"]),),
        Fix(
            "Build one vocabulary and use it for both; where two are built, from the same "
            "symbols in the same order."
        ),
    )


def _unknown(run: Run) -> Iterator[Finding]:
    """An id that training hardly knows makes up much of the validation texts: words that the
    vocabulary does not find.
    """
    shift = (run.facts.get("samples") or {}).get("token_shift") or {}
    number, before, after = shift.get("newcomer") or (0, 0.0, 0.0)
    if (
        min(shift.get("train", 0), shift.get("eval", 0)) < 500
        or after < 0.08
        or before > 0.05 * after
        or before > 0.005
    ):
        return
    lookups = outside_of_models(run, marked_lines(run, "default"))
    makers = {s.function for s in lookups}
    uses = [
        s
        for s in marked_lines(run, "use")
        if any(f"{name}(" in s.code for name in makers if name != "<module>")
    ]
    text = (
        f"id {int(number)} is {before:.2%} of the tokens of training and {after:.0%} of those "
        "of validation, padding left out"
    )
    yield Finding(
        "pipeline.tokenizer-mismatch",
        "likely",
        0.9,
        "Validation texts are mostly unknown to the vocabulary of training",
        places(*uses[-1:], *lookups[:1], *feeding_sites(run))[:4],
        (Evidence(text, "samples", value=after, expected=before),),
        Fix(
            "Split, clean and lower-case validation texts by the very function that "
            "training texts went through."
        ),
    )


def _example(pair: Mapping[str, Any]) -> str:
    token, first, second = pair["examples"][0]
    return f"{token!r} is {first} in one and {second} in the other"


def _finding(run: Run, pair: Mapping[str, Any], title: str, text: str, share: float) -> Finding:
    return Finding(
        "pipeline.tokenizer-mismatch",
        "proven",
        0.95,
        title,
        _where(run, pair),
        (Evidence(text, "vocabularies", value=share, expected=0.0),),
        Fix(
            "Build one vocabulary, derive the table for decoding from it, and use both everywhere."
        ),
    )


def _where(run: Run, pair: Mapping[str, Any]) -> tuple[Site, ...]:
    """Where the second table gets its name, and where vocabularies are numbered."""
    named = [
        s for name in reversed(pair["names"]) for s in marked_lines(run, "assign", names=(name,))
    ]
    numbered = outside_of_models(run, marked_lines(run, "vocabulary"))
    owners = [s for s in named if s.function in ("<module>", "main")] or named
    holders = [
        s
        for name in pair.get("holders") or ()
        if name
        for s in marked_lines(run, "assign", names=(name,))
    ]
    return places(*holders[:2], *owners[:2], *numbered[:2])[:5]
