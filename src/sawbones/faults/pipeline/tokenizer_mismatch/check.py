"""Text that comes back different: tables for encoding and decoding that disagree, or a vocabulary of its own for each split

## What it sees
Vocabularies among the user's variables, found by value. Fires when a table for decoding holds the
same entries as a vocabulary at other ids, or when two vocabularies share their entries but number
them differently and the ids of validation are distributed unlike those of training although their
frequencies by rank agree, or validation is answered by chance while training is answered well, or
one evaluation after the training is 20 points worse than another, beyond three errors of both. Also
when one id that is next to absent from training makes up 8 % and more of the validation tokens,
padding left out; and, with no vocabulary in sight, when more than 12 % of the tokens have moved to
other ids while the frequencies, sorted, differ by less than an eighth of that. Categories of a table
are tried: where their codes are distributed otherwise than in training, and their sorted frequencies
are not, the model answers once more for half of the evaluated rows with other codes, and for the
other half with those under which it was best. Fires when the loss falls by a tenth of that of the
best constant answer, and by 6 standard errors; likely where the codes that the answers ask for bring
the frequencies of training back. Earliest at step 1.

## Why it matters
The model is evaluated, sampled or served in another language than it was trained in.

## Looks like
Training loss falls, validation is worse than chance; or a good loss and samples that are gibberish.

## Example
    train_vocab, val_vocab = build_vocab(train_text), build_vocab(val_text)

## Use instead
    vocab = build_vocab(train_text)

## Confirm it
Nothing is left to confirm: ids are compared entry by entry, and codes are put back.

## False alarms
Source and target languages have vocabularies of their own: their ids are only judged against each
other when training and validation ids differ in the way a renumbering makes them. Tables shifted by
a constant (special tokens in front) and plain lists of words, which need not be tables at all, are
not counted. Validation texts on another topic bring ids that training does not have, or frequencies
that differ when sorted as well; of short texts (under 4000 tokens) no frequencies are compared. A
second vocabulary that only finds rows of pretrained vectors leaves validation answered as training
is. Later rows with other shares of the categories are answered best with the codes that they have.

## References
Vocabularies rebuilt from a set at each start, per split, or at serving time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sawbones.evidence import NothingToJudge, compared, context, counted, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.schema.held import VocabularyPair
from sawbones.schema.populations import Renumbering
from sawbones.schema.samples import Samples, TokenShift
from sawbones.stats.evaluations import hits
from sawbones.trace.feeding import feeding_sites
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines, marked_lines

NEEDS = ("steps",)
USES = ("vocabularies", "samples", "evaluation", "source_lines", "populations")
EXPLAINS = (
    "evaluation.overfitting",
    "evaluation.collapsed-prediction",
    "evaluation.leak-contamination",
    "loop.nondeterminism",
)
EXPERIMENT = None
MIN_TOKENS = 4000  # of each part, so that two halves of one text have about the same frequencies
MIN_TOKENS_OF_ONE_ID = 500  # of each part, where the share of one id is compared
MIN_ANSWERS = 150  # of each part, so that a share of right answers is known to 4 %
MIN_MOVED = 2  # entries
RENUMBERED = "Training and validation number their tokens differently"


def check(run: Run) -> Iterator[Finding]:
    told = run.populations.renumbered
    if told is not None:
        if _is_better(told):
            yield _put_back(run, told)
        return  # else the codes are right as they are, whatever their shares
    pairs = run.vocabularies
    shift = (run.samples or Samples()).token_shift
    if not pairs and not shift:
        raise NothingToJudge(
            "the script holds no two vocabularies, and no tokens of validation were counted"
        )
    found = (_of_tables(run, pair, shift) for pair in pairs)
    yield from next((f for f in map(list, found) if f), None) or (
        (shift and (list(_renumbered(run, shift)) or _unknown(run, shift))) or ()
    )


def _of_tables(run: Run, pair: VocabularyPair, shift: TokenShift | None) -> Iterator[Finding]:
    moved, shared = pair.moved, pair.shared
    if moved < MIN_MOVED or pair.shifted or pair.kind == "list":
        return
    if not limits.MOVED_ENTRIES.reached_by(moved / max(shared, 1)):
        return
    token, first, second = pair.examples[0]
    example = f"{token!r} is {first} in one and {second} in the other"
    if pair.kind == "decoding":
        text = f"{moved} of {shared} entries decode to something else, e.g. {example}"
        title = "decode(encode(text)) is not text: the two tables disagree"
        yield _two_tables(run, pair, title, exact(text, moved / shared, signal="vocabularies"))
        return
    apart = _ids_apart(shift) or _answers_by_chance(run) or _far_worse(run)
    if apart is not None:
        text = f"{moved} of {shared} shared entries moved, e.g. {example}; {apart}"
        reading = counted(text, moved, shared, limits.MOVED_ENTRIES, signal="vocabularies")
        yield _two_tables(run, pair, RENUMBERED, reading)


def _ids_apart(shift: TokenShift | None) -> str | None:
    if (
        shift is None
        or not limits.ID_DISTANCE.passed_by(shift.distance)
        or not limits.RANK_DISTANCE.undercut_by(shift.by_rank / shift.distance)
    ):
        return None
    return (
        f"ids of validation and training overlap by {1 - shift.distance:.0%} only, sorted by "
        f"frequency by {1 - shift.by_rank:.0%}"
    )


def _answers_by_chance(run: Run) -> str | None:
    """What was learned is lost on validation to the last bit: by-heart learning leaves more than
    that of a task so well learned.
    """
    found, told = hits(run), (run.samples or Samples()).predictions
    rows = list(told.classes.values())
    asked = sum(row.wanted for row in rows)
    if found is None or min(found[2], asked) < MIN_ANSWERS or told.maps:
        return None
    right = sum(row.right for row in rows) / asked
    commonest = max(row.wanted for row in rows) / asked
    held_out, chance, number = found
    if (
        not limits.COMMONEST_ANSWER.kept_by(commonest)
        or not limits.ANSWERED_IN_TRAINING.reached_by((right - commonest) / (1 - commonest))
        or not limits.ABOVE_CHANCE.kept_by(held_out - chance - 1 / math.sqrt(number))
    ):
        return None
    return (
        f"{right:.0%} of the answers are right in training, {held_out:.0%} in validation, "
        f"{chance:.0%} for the commonest answer"
    )


def _far_worse(run: Run) -> str | None:
    """One evaluation of new texts after the training that is lost against another one, of the same
    model or of a copy.
    """
    judged = [p for p in run.populations.passes if p.kind == "classes" and not p.known]
    if len(judged) <= 1:
        return None
    best, worst = (pick(judged, key=lambda p: p.score) for pick in (max, min))
    noise = sum(p.score * (1 - p.score) / p.rows for p in (best, worst))
    if not limits.LOST_ANSWERS.reached_by(best.score - worst.score - 3 * math.sqrt(noise)):
        return None
    return (
        f"accuracy {best.score:.2f} over {best.rows} texts, {worst.score:.2f} over "
        f"{worst.rows} others"
    )


def _renumbered(run: Run, shift: TokenShift) -> Iterator[Finding]:
    """Validation has the frequencies of training, rank by rank, and other ids have them: only a
    renumbering does that.
    """
    if min(shift.train, shift.eval) < MIN_TOKENS:
        return
    distance, by_rank = shift.distance, shift.by_rank
    number, before, after = shift.newcomer
    # Texts on another topic, or of another kind, have ids that are new to training, or spread in
    # another way.
    if (
        not limits.RENUMBERED_IDS.reached_by(distance)
        or not limits.RENUMBERED_RANKS.kept_by(by_rank / distance)
        or limits.NEWCOMER_KNOWN.undercut_by(before / after if after else 1)
    ):
        return
    numbered = data_lines(run, "vocabulary")
    text = (
        f"ids of validation and training overlap by {1 - distance:.1%}, and by {1 - by_rank:.1%} "
        f"when both are sorted by frequency; id {number} goes from {before:.2%} to {after:.2%}"
    )
    reading = compared(text, distance, limits.RENUMBERED_IDS, expected=by_rank, signal="samples")
    yield finding(
        RENUMBERED,
        locate(*numbered[:2], *feeding_sites(run))[:4],
        (reading,),
        Fix(
            "Build one vocabulary and use it for both; where two are built, from the same "
            "symbols in the same order."
        ),
    )


def _unknown(run: Run, shift: TokenShift) -> Iterator[Finding]:
    """An id that training hardly knows makes up much of the validation texts: words that the
    vocabulary does not find.
    """
    number, before, after = shift.newcomer
    if (
        min(shift.train, shift.eval) < MIN_TOKENS_OF_ONE_ID
        or not limits.UNKNOWN_TOKENS.reached_by(after)
        or not limits.UNKNOWN_RATIO.kept_by(before / after)
        or not limits.UNKNOWN_IN_TRAINING.kept_by(before)
    ):
        return
    lookups = data_lines(run, "default")
    makers = {s.function for s in lookups} - {"<module>"}
    uses = [s for s in marked_lines(run, "use") if any(f"{name}(" in s.code for name in makers)]
    text = (
        f"id {number} is {before:.2%} of the tokens of training and {after:.0%} of those "
        "of validation, padding left out"
    )
    yield finding(
        "Validation texts are mostly unknown to the vocabulary of training",
        locate(*uses[-1:], *lookups[:1], *feeding_sites(run))[:4],
        (compared(text, after, limits.UNKNOWN_TOKENS, expected=before, signal="samples"),),
        Fix(
            "Split, clean and lower-case validation texts by the very function that "
            "training texts went through."
        ),
    )


def _is_better(told: Renumbering) -> bool:
    fall = (told.loss - told.renumbered) / max(told.constant, TINY)
    return limits.FALL_OF_LOSS.reached_by(fall) and limits.FALL_BEYOND.reached_by(told.errors)


def _put_back(run: Run, told: Renumbering) -> Finding:
    """The model is good again once the codes of the categories are exchanged."""
    best = min(told.columns, key=lambda c: c.left / max(c.apart, TINY))
    is_back = limits.FREQUENCIES_BACK.kept_by(best.left / max(best.apart, TINY))
    moved = ", ".join(
        f"{c.moved} of {c.codes} codes of column {c.column}" for c in told.columns if c.moved
    )
    text = (
        f"loss {told.loss:.3g} over {told.rows} evaluated rows, {told.renumbered:.3g} with {moved} "
        f"exchanged as the other rows of the evaluation have it; {told.constant:.3g} for the best "
        "constant answer"
    )
    frequencies = (
        f"the shares of the codes in column {best.column} are {best.apart:.1%} apart from those of "
        f"training, and {best.left:.1%} with the codes that were found, in which they had no part"
    )
    reading = compared(text, told.errors, limits.FALL_BEYOND, expected=0, signal="populations")
    return finding(
        "Training and validation number their categories differently",
        locate(*_fitted_again(run), *told.sites, *feeding_sites(run))[:4],
        (
            reading,
            context(frequencies, signal="populations", value=best.left, expected=best.apart),
        ),
        Fix(
            "Fit the encoder of the categories once, on the training part, and apply the fitted "
            "one to every other part."
        ),
        at_most="proven" if is_back else "suspected",
    )


def _fitted_again(run: Run) -> list[Site]:
    """Where a function fits for the second time what it has fitted before."""
    fits = [r for r in run.source_lines if r.kind == "fit"]
    places = [(r.name, r.site.file, r.site.function) for r in fits]
    return [
        r.site
        for r, place in zip(fits, places, strict=True)
        if any(
            other == place and before.site.line < r.site.line
            for before, other in zip(fits, places, strict=True)
        )
    ][-1:]


def _two_tables(run: Run, pair: VocabularyPair, title: str, reading: Evidence) -> Finding:
    return finding(
        title,
        _where(run, pair),
        (reading,),
        Fix(
            "Build one vocabulary, derive the table for decoding from it, and use both everywhere."
        ),
    )


def _where(run: Run, pair: VocabularyPair) -> tuple[Site, ...]:
    """Where the second table gets its name, and where vocabularies are numbered."""

    def assigned(names: Sequence[str]) -> list[Site]:
        return [s for name in names if name for s in marked_lines(run, "assign", names=(name,))]

    named = assigned(pair.names[::-1])
    owners = [s for s in named if s.function in ("<module>", "main")] or named
    numbered = data_lines(run, "vocabulary")
    holders = assigned(pair.holders)
    return locate(*holders[:2], *owners[:2], *numbered[:2])[:5]
