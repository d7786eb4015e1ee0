"""The same records on both sides of the split

## What it sees
A 64-bit fingerprint of every sample of every batch. Fires when between 2 % and 90 % of the distinct
samples of a validation source (at least five of them) were also trained on by the same model (or
before it went on from a checkpoint: a split drawn anew at every resume), or more when the training
set holds many copies of its own samples; or of the distinct rows that a model is given after its
training, however they are fed (rows of whole numbers, such as pictures, where no copy has another
trained row near by, or by far more of them than come about by chance). Also when a quarter of the validation samples lies five times nearer
to one trained sample than to the tenth-nearest, or is a picture that was trained on turned by a
right angle or mirrored, and none as it is; or when a twentieth of the evaluated rows lies, to rounding, on the straight line between two trained ones
(SMOTE before the split), and rows taken at random do not; or when a tenth of the evaluated texts
shares 70 % of its words with a trained text and less than 40 % with the tenth-nearest; or when a
quarter of the evaluated windows of a series lies between two windows that were trained on before and
hold a quarter of its steps each, bit for bit (overlapping windows that are dealt out), wherever the
series is kept: windows as the model is given them, or as the script held them before it made
spectra, statistics or scaled rows of them, where it is known which row was made of which window.

## Why it matters
The share of copies is answered from memory, so the validation score is too good by an unknown
amount.

## Looks like
A validation score that is higher than any published one, and falls on new data.

## Example
    train, val = data[:900], data[800:]

## Use instead
    train, val = data[:800], data[800:]

## Confirm it
No experiment is needed: the samples are the same bit for bit.

## False alarms
Short discrete samples coincide by chance: the share must be well above what would be met if samples
of both parts were equal as often, pair by pair, as samples of one part are. That is not asked of
rows that could hardly come about twice: long texts that follow no rule, and measurements (whether
two values of a batch are equal is counted; that a one-hot code or a board is stored as real numbers
says nothing). Where a model answers inside of every step and its answers make the targets, or are
drawn and weighed in the loss (reinforcement learning), these calls are no evaluation, and no rows are held out. Wide rows of mostly zeros (bags of words) are compared as wholes
too. Folds of a cross-validation and a second training stage are told apart by their optimizers.
Evaluation of the training loader itself is no split, and neither are batches of trained rows alone,
or one that holds half of all trained rows. Equal rows of a model that takes other inputs besides,
of a grid, or of few values are no copies; nor are pictures of few shapes, which have others near by
that differ in some places only. Rows that vary in one direction, or on a
grid, are in line with others by chance: rows taken at random then are, too, and nothing is said.
Training that turns its pictures at random shows some of them as they are, and boards and masks meet
their mirror by chance: such runs are left alone. Texts made by a template are near to many others,
not to one. Windows of parts that were cut at a moment overlap at one side alone. Runs of few
different steps (the letters of a genome) come about at the same place of two windows as well, and
are counted out by that. Rows that were made into something else are compared where they hold fractions:
letters, boards and counts come about again and again. A score on windows of the training part beside one of another part is none.

## References
Lee et al., "Deduplicating training data makes language models better" (2022).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Batch, Evidence, Finding, Fix, Run
from sawbones.schema.populations import CopiedRows, DerivedRows
from sawbones.schema.samples import LaterWindows, NearCopies, Samples, TurnedCopies
from sawbones.stats.drawn_losses import drawn_losses
from sawbones.stats.overlaps import chance_of_pairs, judged, least_share
from sawbones.stats.splits import (
    Split,
    by_width,
    differ_as_wholes,
    has_telling_rows,
    repeats,
    shared,
    splits,
    stretches,
)
from sawbones.stats.supervised import makes_its_targets
from sawbones.trace.feeding import built_loaders, model_calls
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines, dealing_lines

NEEDS = ("batches", "validation", "steps")
USES = (
    "samples",
    "source_lines",
    "source_calls",
    "loaders",
    "populations",
    "evaluation",
    "restored",
)
EXPLAINS = ()
EXPERIMENT = None
MIN_COPIES = 5  # samples: fewer may be real duplicates
MIN_TOKENS = 6  # whole numbers per sample: shorter ones coincide
MIN_BATCH = 16  # samples, so that a share of a batch says something
MIN_MIXED = 2  # batches of known and new samples
MIN_WHOLE = 64  # samples of an evaluation in one batch
MIN_TURNED = 40  # pictures: so many without one as it is are not turned at random
MIN_ASKED = 20  # steps before which a model answers: fewer are evaluations at the end
NEARER = 5  # times as near as the tenth neighbour, as it was recorded


def check(run: Run) -> Iterator[Finding]:
    parts = splits(run)
    samples = run.samples or Samples()
    near, turned, windows = samples.copies, samples.turned, samples.later_windows
    passes = run.populations
    again, between, texts = passes.copied, passes.between, passes.near_texts
    if not any((parts, near, turned, windows, again, between, texts)):
        raise NothingToJudge("no evaluated sample could be compared with trained ones")
    found = list(_exact(run, parts))[:1] or list(_given_again(run, parts, again))
    found = found or list(_near(run, parts, near)) or list(_turned(run, parts, turned))
    found = found or list(_overlapped(run, parts, windows))
    if windows is None or not windows.ahead:
        found = found or list(_overlapped(run, parts, run.sources.dealt))
    yield from found or list(_near_texts(run, texts)) or _interpolated(run, between)


def _given_again(run: Run, parts: list[Split], seen: CopiedRows | None) -> Iterator[Finding]:
    """Rows that the model is given in an evaluation after training, and was given in training: in
    batches that also hold new ones, so that it is no score on training rows.
    """
    if seen is None or seen.models < len(stretches(run)) or _asks_itself(run):
        return  # a model that starts over may have met them in another fold
    least = least_share(
        limits.COPIED_SAMPLES.value, seen.chance, seen.rows, seen.is_telling, times=3
    )
    if limits.NEAR_BESIDE_COPIES.kept_by(seen.near):
        # What is met by chance has neighbours: no margin for that on top of the bound.
        rounds = (chance_of_pairs((p.first_round(),), len(p.trained_on)) for p in parts)
        chance = min(seen.chance, max(rounds, default=1))
        least = min(least, max(limits.COPIED_SAMPLES.value, chance))
    if (
        judged(seen.copies, seen.rows, MIN_COPIES, least) != "some"
        or not limits.MIXED_BATCHES.reached_by(seen.mixed)
        or not limits.TRAINED_AGAIN.kept_by(seen.met)
    ):
        return
    copies, total = seen.copies, seen.rows
    text = f"{copies} of {total} distinct evaluated rows were trained on, bit for bit"
    evidence = [counted(text, copies, total, limits.COPIED_SAMPLES, signal="populations")]
    if (honest := _without_copies(run)) is not None:
        evidence.append(honest)
    yield _copies_in(run, f"{copies / total:.0%} of the evaluated rows were trained on", evidence)


def _near_texts(run: Run, seen: DerivedRows | None) -> Iterator[Finding]:
    """Evaluated texts with all but a few words of one trained text, and few of any other."""
    if seen is None or not limits.NEAR_TEXTS.reached_by(seen.derived / seen.rows):
        return
    share = seen.derived / seen.rows
    text = (
        f"{seen.derived} of {seen.rows} evaluated texts share most of their words with one or "
        "a few trained texts and less than half with all others"
    )
    evidence = [counted(text, seen.derived, seen.rows, limits.NEAR_TEXTS, signal="populations")]
    halves = data_lines(run, "split")
    yield finding(
        f"{share:.0%} of the evaluated texts are nearly trained texts",
        locate(*halves[:2], *model_calls(run, "eval")[:1]),
        [*evidence, *_other_score(seen, "over the other texts")],
        Fix(
            "Remove texts that differ in a few words, in their order or punctuation only, before "
            "splitting; or split by the text that they are copies of."
        ),
    )


def _other_score(seen: DerivedRows, which: str) -> list[Evidence]:
    """The claimed number, and the one without the rows concerned."""
    if seen.score is None or seen.new_score is None:
        return []
    name = "accuracy" if seen.kind == "classes" else "mean distance"
    text = f"{name} {seen.score:.2f}; {seen.new_score:.2f} {which}"
    if seen.constant is not None:
        text += f", of which {seen.constant:.0%} are of one class"
    return [context(text, signal="populations", value=seen.score, expected=seen.new_score)]


def _interpolated(run: Run, seen: DerivedRows | None) -> Iterator[Finding]:
    """Evaluated rows that were made from two trained ones each."""
    if seen is None or not limits.IN_LINE_BY_CHANCE.kept_by(seen.by_chance):
        return
    share = seen.derived / seen.rows
    if seen.derived < MIN_COPIES or not limits.ROWS_BETWEEN.reached_by(share):
        return
    text = (
        f"{seen.derived} of {seen.rows} evaluated rows lie on the straight line between two "
        "trained ones, to rounding: they were interpolated"
    )
    evidence = [counted(text, seen.derived, seen.rows, limits.ROWS_BETWEEN, signal="populations")]
    halves = data_lines(run, "split")
    yield finding(
        f"{share:.0%} of the evaluated rows were interpolated from trained ones",
        locate(*halves[:2], *model_calls(run, "eval")[:1]),
        [*evidence, *_other_score(seen, "over the other rows")],
        Fix("Split first, then oversample or fill in the training part alone."),
    )


def _near(run: Run, parts: list[Split], seen: NearCopies | None) -> Iterator[Finding]:
    """Samples that are no copies bit for bit, but lie right beside a trained one and far from all
    others.
    """
    if seen is None:
        return
    share = seen.near
    by_chance = _by_chance(seen.middle)
    if (
        len(parts) > 1  # folds have each other's samples, scaled a little differently
        or not limits.NEAR_COPIES.reached_by(share)
        or not limits.NEAR_ABOVE_CHANCE.reached_by(share - by_chance)
        or not limits.NEAR_ALONE.reached_by(seen.alone)
    ):
        return
    text = (
        f"{share:.0%} of {seen.evaluated} validation samples lie five times nearer to a "
        "trained sample than to others"
    )
    halves = data_lines(run, "split")
    yield finding(
        f"{share:.0%} of the validation samples are nearly trained samples",
        locate(*halves[:2], *model_calls(run, "eval")[:1]),
        (compared(text, share, limits.NEAR_COPIES, expected=0, signal="samples"),),
        Fix(
            "Split first, then make copies, windows or augmented versions from the "
            "training part alone."
        ),
    )


def _overlapped(run: Run, parts: list[Split], seen: LaterWindows | None) -> Iterator[Finding]:
    """Windows of one series, dealt out: trained ones hold the steps of evaluated ones."""
    if seen is None or seen.ahead or len(parts) > 1 or _asks_itself(run):
        return  # a forecast: evaluation.leak-temporal has more to say
    share = seen.between / seen.evaluated
    if not limits.OVERLAPPED_WINDOWS.reached_by(
        share - seen.by_chance
    ) or not limits.WINDOWS_APART.kept_by(seen.apart):
        return
    text = (
        f"{seen.between} of {seen.evaluated} evaluated windows of {seen.steps} steps lie between "
        "two trained windows that hold at least a quarter of those steps each, bit for bit"
    )
    yield finding(
        f"{share:.0%} of the evaluated windows share their steps with trained ones",
        dealing_lines(run)[:3],
        (counted(text, seen.between, seen.evaluated, limits.OVERLAPPED_WINDOWS, signal="samples"),),
        Fix(
            "Cut the recording at one moment, or hold out whole recordings, and make the windows "
            "of each part from that part alone."
        ),
    )


def _turned(run: Run, parts: list[Split], seen: TurnedCopies | None) -> Iterator[Finding]:
    """Pictures that were trained on turned by a right angle or mirrored."""
    if seen is None or len(parts) > 1 or seen.turned < MIN_TURNED:
        return
    by_chance = seen.as_they_are / (seen.as_they_are + seen.turned)
    share = seen.turned / seen.evaluated
    if not limits.TURNED_AT_RANDOM.kept_by(by_chance) or not limits.NEAR_COPIES.reached_by(share):
        return
    text = (
        f"{seen.turned} of {seen.evaluated} evaluated pictures were trained on turned by a right "
        f"angle or mirrored, bit for bit, and {seen.as_they_are} beside them as they are"
    )
    halves = data_lines(run, "split")
    yield finding(
        f"{share:.0%} of the evaluated pictures were trained on, turned or mirrored",
        locate(*halves[:2], *model_calls(run, "eval")[:1]),
        (counted(text, seen.turned, seen.evaluated, limits.NEAR_COPIES, signal="samples"),),
        Fix("Split first, then turn and mirror the pictures of the training part alone."),
    )


def _by_chance(middle: float) -> float:
    """The share of near samples where none is a copy, from the median distance to the first
    neighbour in those to the tenth.

    Samples that vary in few directions have near neighbours anyway: of nine neighbours nearer than
    the tenth, at uniform density in d directions, the first is nearer than r with probability 1 -
    (1 - r**d)**9. A median near 0 is that of copies.
    """
    if not limits.MEDIAN_DISTANCE.passed_by(middle) or middle >= 1:
        return 0
    directions = math.log(1 - (1 / 2) ** (1 / 9)) / math.log(middle)
    return float(1 - (1 - (1 / NEARER) ** directions) ** 9)


def _exact(run: Run, parts: list[Split]) -> Iterator[Finding]:
    for part in parts:
        for source, batches in part.sources().items():
            if source == "model":
                batches = [] if _asks_itself(run) else _partly_known(part, batches)
            elif source in part.trained_sources:
                continue
            if batches:
                yield from _of(run, part, source, batches)


def _of(run: Run, part: Split, source: str, batches: list[Batch]) -> Iterator[Finding]:
    copies, total = shared(batches, part.trained_on)
    in_training = repeats(b for b in part.trained if b.epoch == 0)
    telling = has_telling_rows(batches, len(part.trained_on), copies / max(total, 1))
    many_forms = telling or _rare_rows(run, copies)
    many_forms = many_forms and not _has_near_others(run)
    if not many_forms and by_width(batches)[1] < MIN_TOKENS:
        return
    chance = chance_of_pairs(
        (part.first_round(), list(batches[0].fingerprints)), len(part.trained_on)
    )
    least = least_share(limits.COPIED_SAMPLES.value, chance, total, many_forms, times=3)
    found = judged(copies, total, MIN_COPIES, least)
    if differ_as_wholes(run, total):
        return
    if found == "none" or (found == "whole" and not limits.TRAINING_COPIES.reached_by(in_training)):
        return  # the whole set was trained on: another fault
    text = f"{copies} of {total} distinct validation samples were trained on, bit for bit"
    evidence = [counted(text, copies, total, limits.COPIED_SAMPLES, signal="batches")]
    if limits.COPIED_SAMPLES.passed_by(in_training) and source != "model":
        text = f"{in_training:.0%} of the samples of one training epoch are copies"
        evidence.append(context(text, signal="batches", value=in_training, expected=0))
    if (honest := _without_copies(run)) is not None:
        evidence.append(honest)
    title = f"{copies / total:.0%} of the validation samples were trained on"
    yield _copies_in(run, title, evidence, source, *sorted(part.trained_sources))


def _copies_in(run: Run, title: str, evidence: list[Evidence], *sources: str) -> Finding:
    """`sources`: the loaders that gave the samples, where there are any."""
    halves = data_lines(run, "split")
    return finding(
        title,
        locate(*halves[:2], *built_loaders(run, *sources), *model_calls(run, "eval")[:1]),
        evidence,
        Fix(
            "Remove duplicates before splitting, split before oversampling or augmenting, "
            "and make the two index ranges disjoint."
        ),
    )


def _without_copies(run: Run) -> Evidence | None:
    """The score beside the one over rows that were not trained on."""
    for seen in run.populations.passes:
        copies = round(seen.known * seen.rows)
        if seen.kind and copies >= MIN_COPIES and seen.rows - copies >= MIN_COPIES:
            name = "accuracy" if seen.kind == "classes" else "mean distance"
            text = (
                f"{name} {seen.score:.2f}; {seen.new_score:.2f} over the "
                f"{seen.rows - copies} rows without the {copies} copied ones"
            )
            claimed, honest = seen.score, seen.new_score
            return context(text, signal="populations", value=claimed, expected=honest)
    return None


def _rare_rows(run: Run, copies: int) -> bool:
    """Whether rows of tokens that were met again could have come about only once, and come from no
    template.

    They must be those of this source: a score on the training rows meets all of them again.
    """
    seen = (run.samples or Samples()).token_copies
    return (
        seen is not None
        and seen.copies >= MIN_COPIES
        and limits.RARE_COPIES.reached_by(seen.copies / seen.evaluated)
        and limits.COPIES_OF_THIS_SOURCE.reached_by(copies / max(seen.shared, 1))
        and limits.TEMPLATE_ROWS.undercut_by(seen.beside)
    )


def _has_near_others(run: Run) -> bool:
    """Pictures of a few shapes, boards: that a row equals a trained one by chance shows in others
    that differ from it in a place or two, however many values a row has.
    """
    seen = run.populations.copied
    return seen is not None and not seen.is_telling and limits.NEAR_AS_USUAL.reached_by(seen.near)


def _asks_itself(run: Run) -> bool:
    """The model answers inside of every step, and its answers make the targets (a value of the next
    state, a label that it gives itself) or are drawn, and weighed in the loss: such calls are a part
    of training, and no rows are held out.
    """
    asked = {p.step for p in run.evaluation.passes}  # the last of them: earlier ones are not kept
    if len(asked) < MIN_ASKED or not (makes_its_targets(run) or drawn_losses(run)):
        return False
    steps = run.num_steps - min(asked) + 1
    return limits.PASSES_PER_STEP.passed_by(len(asked) / steps)


def _partly_known(part: Split, batches: list[Batch]) -> list[Batch]:
    """Without loaders one source feeds everything: a batch of trained samples alone is the training
    score, one of new samples alone a clean split. What is left counts only when all training
    samples were read more than once, so that it is known which ones they are.
    """
    times = Counter(f for b in part.trained for f in b.fingerprints)
    once = sum(n == 1 for n in times.values()) / max(len(times), 1)
    wide = not by_width(batches)[0] and by_width(batches)[1] >= MIN_TOKENS
    can_tell = wide or has_telling_rows(batches, len(times))
    if not can_tell or not limits.READ_ONCE.kept_by(once):
        return []
    whole = [b for b in batches if len(b.fingerprints) >= MIN_BATCH]
    known = [shared([b], set(times))[0] / len(set(b.fingerprints)) for b in whole]
    mixed = [
        b
        for b, share in zip(whole, known, strict=True)
        if limits.MIXED_BATCH.passed_by(min(share, 1 - share))
    ]
    if len(mixed) == 1 and _is_part(mixed[0], set(times)):
        return mixed
    enough = len(mixed) >= MIN_MIXED and limits.MIXED_BATCHES.reached_by(len(mixed) / len(whole))
    return mixed if enough else []


def _is_part(batch: Batch, trained_on: set[int]) -> bool:
    """A whole evaluation in one batch. All data together hold every trained sample."""
    met = shared([batch], trained_on)[0] / len(trained_on)
    return len(batch.fingerprints) >= MIN_WHOLE and limits.TRAINED_AGAIN.kept_by(met)
