"""Texts cut at a limit in a way that loses their end or their answer

## What it sees
Token rows and targets of up to 60 batches. Lengths pile up at the longest one: at least 8 % of all
rows, three times as many as at the lengths just below. Fires when the rows below end in one and the
same id and those at the limit do not, or when rows at the limit have no target that counts while
the others have, or, with one label per row, when at the end of training rows at the limit are
answered wrong at least four times as often as shorter ones, and 20 points more often. When all rows
have one length, the source cuts at a number that could be it, and inputs say nothing about their
labels (or, in a language model, all begin with one id and end in any), it asks the experiment.

## Why it matters
The model never sees how long texts end, so it does not stop; a cut-off answer leaves a sample that
costs time and teaches nothing.

## Looks like
Loss is fine; generation of long texts rambles on, or long prompts are answered badly.

## Example
    ids = (encode(text) + [EOS])[:max_len]

## Use instead
    ids = encode(text)[: max_len - 1] + [EOS]

## Confirm it
Where shorter rows exist, nothing is left to confirm: lengths, ends and targets are in the record.
Where all rows are of one length, the script runs again with a larger limit: confirmed when rows get
longer and then tell their labels, or end in one id.

## False alarms
Blocks of one length cut from a long text have no shorter rows, and stay of one length with a larger
limit. Texts that are cut and still closed by EOS end alike at every length. An input whose last
token was cut off for the shift is judged by its targets. Texts without any terminator and with all
their targets are not reported, even when they pile up.

## References
Tokenizers with truncation=True that append EOS first; instruction data cut from the right with the
answer at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, context, counted, finding
from sawbones.evidence.limits import data as label_limits
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.schema.samples import Samples, TokenRows, TokenTargets
from sawbones.stats.learning import learned
from sawbones.trace.feeding import loader_sites
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines, numbers_equal, outside_of_models

NEEDS = ("deep", "samples")
USES = ("label_probe", "source_lines", "source_numbers", "loaders")
EXPLAINS = ("data.degenerate-samples", "pipeline.special-tokens", "data.labels-misaligned")
EXPERIMENT = None  # but for texts that are all cut, see below
MIN_BATCHES = 5  # so that the rows stand for those of the data
MIN_LENGTHS = 3  # different ones; with fewer, all rows are of one length but for a rest
MIN_ROWS = 20  # at the limit, and below it, that are compared
MIN_ANSWERS_AT_LIMIT = 50  # rows: shares of right answers are noisier than counts of ends
MIN_ALL_CUT = 100  # rows, where there are no shorter ones to compare with
MIN_LIMIT = 8  # tokens: a shorter row is rarely a text
MIN_STEPS = 20  # of training: a loss that has not moved by then may be stuck
SLACK = 2  # tokens by which the number in the source may differ: BOS, EOS, the shift

_Said = tuple[str, Evidence]


def check(run: Run) -> Iterator[Finding]:
    rows = (run.samples or Samples()).rows
    if rows is None or rows.batches < MIN_BATCHES:
        raise NothingToJudge(f"no token rows of {MIN_BATCHES} batches")
    if len(set(rows.lengths)) < MIN_LENGTHS:
        yield from _all_cut(run, rows)
        return
    lengths = Counter(rows.lengths)
    limit = max(lengths)
    at, total = lengths[limit], sum(lengths.values())
    below = [lengths.get(limit - k, 0) for k in range(1, 5)]
    if (
        at < MIN_ROWS
        or not limits.PILED_UP.reached_by(at / total)
        or not limits.ALL_CUT.kept_by(at / total)
        or not limits.PILE_OVER_BELOW.reached_by(at * len(below) / max(sum(below), 1))
    ):
        return
    targets = rows.targets or TokenTargets()
    texts = limits.MOST_CUT.kept_by(at / total) or _begin_alike(rows)
    found = (texts and (_lost(targets) or _unclosed(targets))) or _unanswerable(rows)
    if not found:
        return
    title, reading = found
    cuts = data_lines(run, "cut", limit)
    named = [s for number in _numbers(run, limit) for s in numbers_equal(run, number)]
    piled = (
        f"{at} of {total} rows have exactly {limit} tokens, the lengths just below "
        f"{max(below)} at most"
    )
    yield finding(
        title,
        locate(*cuts[:1], *named[:1], *cuts[1:2], *loader_sites(run)[::-1])[:4],
        (counted(piled, at, total, limits.PILED_UP, signal="samples"), reading),
        Fix(
            "Cut the part that can be spared (the text before EOS, the beginning of the "
            "prompt) and keep EOS and the answer."
        ),
    )


def _all_cut(run: Run, rows: TokenRows) -> Iterator[Finding]:
    """Every text is longer than the limit, and what is left of them says nothing about their
    labels.
    """
    limit, total = max(rows.lengths), len(rows.lengths)
    if total < MIN_ALL_CUT or limit < MIN_LIMIT or run.num_steps < MIN_STEPS:
        raise NothingToJudge(f"fewer than {MIN_ALL_CUT} token rows, or too short ones")
    at_limit = rows.lengths.count(limit) / total
    reading = _tells_nothing(run) or _never_closed(rows)
    if not limits.ALL_CUT.reached_by(at_limit) or reading is None:
        return
    lines = [
        r.site
        for r in run.source_lines
        if r.kind == "cut" and (r.value is None or abs(r.value - limit) <= SLACK)
    ]
    cuts = outside_of_models(run, locate(*lines))
    written = [r for r in run.source_numbers if r.name and abs(r.value - limit) <= SLACK]
    written.sort(key=lambda r: abs(r.value - limit))
    if not cuts or not written:
        return
    table = max(
        (t.num_embeddings for d in run.deep[:1] for t in d.tokens if t.role == "positions"),
        default=0,
    )
    raised = 4 * limit if table <= limit + SLACK else min(4 * limit, table)
    numbers = [
        {"file": r.site.file, "line": r.site.line, "old": int(r.value), "new": raised}
        for r in written[:3]
    ]
    text = f"all {total} rows have {limit} tokens, and the source cuts texts at such a number"
    yield finding(
        "All texts are cut before the part that is to be learned from them",
        locate(written[0], *cuts[:1], *loader_sites(run)[::-1])[:4],
        (context(text, signal="samples"), reading),
        Fix("Raise the limit, or cut another part of the text than the one that is to be learned."),
        at_most="suspected",
        trial="limit_raised",
        params={"limit": limit, "numbers": numbers},
    )


def _tells_nothing(run: Run) -> Evidence | None:
    trained = run.label_probe.batches if run.label_probe else None
    if (
        trained is None
        or trained.kind != "classes"
        or label_limits.LABEL_SIGNAL_Z.reached_by(trained.z)
        or learned(run, trained)
    ):
        return None
    return compared(
        f"what is left says nothing about the labels ({trained.score:.3f} on "
        f"{trained.num} trained pairs)",
        trained.z,
        label_limits.LABEL_SIGNAL_Z,
        below=True,
        signal="label_probe",
    )


def _never_closed(rows: TokenRows) -> Evidence | None:
    """Texts of a language model, each from its beginning, of which hardly two end alike."""
    targets = rows.targets or TokenTargets()
    total, commonest = targets.last_at_limit.all, targets.last_at_limit.commonest
    if (
        total < MIN_ALL_CUT
        or not limits.TARGETS_COPIED.reached_by(targets.copies)
        or not _begin_alike(rows)
        or not limits.OPEN_ENDS_ALIKE.kept_by(commonest)
    ):
        return None
    text = f"all rows begin with one id, and no id ends more than {commonest:.0%} of them"
    return compared(text, commonest, limits.OPEN_ENDS_ALIKE, below=True, signal="samples")


def _numbers(run: Run, limit: int) -> list[int]:
    """The limit as it may be written: as it is, or as the cut has it when the model is given a
    token less.
    """
    rows = [r.value for r in run.source_lines if r.kind == "cut"]
    return [limit, *sorted({v for v in rows if v is not None and 0 < v - limit <= SLACK})]


def _begin_alike(rows: TokenRows) -> bool:
    """Every row begins with one and the same id: these are texts, each from its beginning, and no
    blocks cut from longer ones.
    """
    return limits.TEXTS_BEGIN_ALIKE.reached_by(rows.starts.commonest)


def _lost(targets: TokenTargets) -> _Said | None:
    at, below = targets.rows_at_limit, targets.rows_below
    if at < MIN_ROWS or below < MIN_ROWS:
        return None
    lost, kept = targets.empty_at_limit / at, targets.empty_below / below
    if not limits.EMPTY_AT_LIMIT.reached_by(lost) or not limits.EMPTY_BELOW.kept_by(kept):
        return None
    text = (
        f"{lost:.0%} of the rows at the limit have no target that counts, {kept:.0%} of the "
        "shorter ones"
    )
    reading = compared(text, lost, limits.EMPTY_AT_LIMIT, expected=kept, signal="samples")
    return "Long samples are cut before the part that is to be learned", reading


def _unclosed(targets: TokenTargets) -> _Said | None:
    """The terminator of the shorter rows is missing at the limit."""
    # inputs alone do not tell: a language model is given all but the last token, the marker of its
    # longest rows
    if not limits.TARGETS_COPIED.passed_by(targets.copied):
        return None
    below, at = targets.last_below, targets.last_at_limit
    if below.all < MIN_ROWS or at.all < MIN_ROWS:
        return None
    end, commonest = max(below.top, key=lambda number: below.top[number]), below.commonest
    closed = at.top.get(end, 0) / at.all
    if (
        not limits.ENDS_ALIKE_BELOW.reached_by(commonest)
        or not limits.CLOSED_AT_LIMIT.kept_by(closed)
        # the longest rows end alike too: they are whole, and what the shorter ones end in is
        # padding
        or limits.TERMINATED.passed_by(at.commonest)
    ):
        return None
    text = (
        f"{commonest:.0%} of the shorter rows end in id {end}, {closed:.0%} of those at the limit"
    )
    reading = compared(
        text, closed, limits.CLOSED_AT_LIMIT, below=True, expected=commonest, signal="samples"
    )
    return "Long texts are cut without their end marker", reading


def _unanswerable(rows: TokenRows) -> _Said | None:
    """One label per row: what is left of long texts does not tell it, while short texts are
    answered.
    """
    at, below = rows.at_limit, rows.below
    if at is None or below is None or at.rows < MIN_ANSWERS_AT_LIMIT or below.rows < MIN_ROWS:
        return None
    wrong, wrong_below = 1 - at.right, 1 - below.right
    if not limits.ANSWERS_LOST.reached_by(wrong - wrong_below) or not (
        wrong_below == 0 or limits.ERRORS_AT_LIMIT.reached_by(wrong / wrong_below)
    ):
        return None
    text = (
        f"{at.right:.0%} of the rows at the limit are answered right (always the same answer: "
        f"{at.commonest:.0%}), {below.right:.0%} of the shorter ones"
    )
    title = "Long texts are cut before the part that their label depends on"
    lost = wrong - wrong_below
    return title, compared(text, lost, limits.ANSWERS_LOST, expected=0, signal="samples")
