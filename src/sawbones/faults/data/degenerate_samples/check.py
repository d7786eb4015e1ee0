"""Samples with nothing in them: empty, all padding, or one and the same sample over and over

## What it sees
Rows of token ids that are padding from end to end, lengths of zero in the batch that crashed, and
fingerprints of samples. Fires when the loss turned non-finite on the step that fed an empty row,
when the script crashed on a batch with a sample of length zero, when it turned non-finite on
batches in which no target counts (all are ignored), when one sample makes up more than a tenth of
an epoch whose other samples are nearly all different, or when a twentieth of all token rows is
empty and these samples differ in nothing but their label.

## Why it matters
An empty sample divides by zero in a mean, leaves a softmax without a key and stops a packed
sequence; a blank one that stands in for many teaches that nothing is something.

## Looks like
NaN or a crash at a step that changes with the seed, long after the run went well.

## Example
    pairs = [(encode(text), label) for text, label in zip(texts, labels)]

## Use instead
    pairs = [(ids, label) for ids, label in zip(map(encode, texts), labels) if ids]

## Confirm it
Nothing is left to confirm: the sample, its place in the batch and what it led to are in the record.

## False alarms
A few empty rows that do no harm are not reported, nor are those of samples that hold more than the
row (a visitor without a history, a form with an optional text): such samples differ from each
other. Small discrete data (bits, board positions, states of a game) repeats by nature: its other
samples are not all different. Sampling with replacement repeats a sample a few times, not in a
tenth of all draws. An input that is empty while another one of the same example asks it (a question
without a passage) is no empty sample: there the mask leaves the query nothing, which is
model.over-masking.

## References
Texts that hold nothing but emoji or markup, files that failed to decode and were replaced by zeros.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sawbones.evidence import NothingToJudge, compared, counted, exact, finding, refused
from sawbones.evidence.limits import data as limits
from sawbones.schema import Batch, Evidence, Finding, Fix, Run, Site
from sawbones.schema.samples import Samples, TokenRows
from sawbones.stats.failures import Birth, failure, first_nonfinite, samples_text
from sawbones.stats.sequences import main_call
from sawbones.trace.feeding import feeding_sites, loader_sites, training_batches
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines, lines_in, marked_lines, outside_of_models

NEEDS = ("batches",)
USES = ("samples", "nonfinite", "source_lines", "data_code", "loaders")
EXPLAINS = (
    "pipeline.bad-lengths",
    "model.over-masking",
    "model.unstable-norm",
    "loss.unstable-log",
    "optimizer.lr-too-high",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "data.nonfinite-input",
    "model.mask-shape",
)
EXPERIMENT = None
# What torch says of a tensor or a length that is empty.
EMPTY_MESSAGES = (
    "has to be greater than 0",
    "non-empty",
    "to have non-zero size",
    "zero-size",
    "Expected reduction dim",
    "0 elements",
)
DIVISIONS = ("div", "div_")
MIN_SAMPLES = 100  # of fewer, a tenth is a handful
MIN_OTHERS = 50  # samples, so that "nearly all different" says something
MIN_BATCHES = 4  # fewer are no epoch
MIN_REPEATS = 4  # times that one sample comes: two or three may be chance
MAX_REPEATED = 40  # different samples that come often: one per label, and labels are few


def check(run: Run) -> Iterator[Finding]:
    seen = sum(len(b.fingerprints) for b in training_batches(run))
    failed = run.ending.kind == "exception" or first_nonfinite(run) is not None
    if seen < MIN_SAMPLES and not failed and _first_bad(run) is None:
        raise NothingToJudge(
            f"fewer than {MIN_SAMPLES} samples were seen, and nothing failed on one"
        )
    found = _crash(run) or _spoiled(run) or _void(run) or _repeated(run) or _blank(run)
    if found is not None:
        yield found


def _first_bad(run: Run) -> int | None:
    return next((i for i, loss in enumerate(run.losses) if not math.isfinite(loss)), None)


def _crash(run: Run) -> Finding | None:
    message = run.ending.message or ""
    if run.ending.kind != "exception" or not any(word in message for word in EMPTY_MESSAGES):
        return None
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        low, high = tensor.get("row_min") or [], tensor.get("row_max") or []
        rows = [i for i, (a, b) in enumerate(zip(low, high, strict=True)) if a == b == 0]
        lengths = len(tensor["shape"]) == 1 or tensor["shape"][1:] == [1]
        if 0 in tensor["shape"] or (rows and (lengths or tensor["shape"][-1] > 1)):
            failed = failure(run)
            step = failed.step if failed is not None else run.num_steps
            what = (
                samples_text(run, tensor, rows[:1])
                if rows
                else f"a tensor of shape {tensor['shape']}"
            )
            text = f"{what} is empty; then: {message.splitlines()[0][:160]}"
            reading = refused(text, value=0, expected=1, steps=(step,))
            return _empty(run, "The script crashed on an empty sample", reading)
    return None


def _spoiled(run: Run) -> Finding | None:
    """An empty row on the very step whose forward made the first non-finite value."""
    birth = first_nonfinite(run)
    if birth is None:
        return None
    title = "An empty sample turned the loss into NaN"
    if _divides_by_empty_counts(birth):
        text = (
            f"at step {birth.step} {birth.op} at {birth.site} divides by a count that is 0 "
            "for a few samples: they hold nothing"
        )
        zeros = birth.inputs[1].zeros
        return _empty(run, title, exact(text, zeros, signal="nonfinite", steps=(birth.step,)))
    empty = _empty_rows(run, birth.step)
    spoiled = any(v.nonfinite and v.is_parameter for v in birth.inputs)
    if not empty or spoiled or _asked_by_another_input(run, birth):
        return None
    text = (
        f"sample {empty[0]} of step {birth.step} is all padding; {birth.op} at {birth.site} "
        "made the first non-finite value"
    )
    reading = exact(text, len(empty), signal="samples", steps=(birth.step,))
    # That the empty row and the NaN came in one step is no proof that one made the other.
    return _empty(run, title, reading, at_most="likely")


def _empty_rows(run: Run, step: int) -> list[int]:
    noted = [
        row for call, row in ((run.samples or Samples()).rows or TokenRows()).empty if call == step
    ]
    return noted or [
        i
        for deep in run.deep
        if deep.step == step
        for t in deep.tokens
        if t.role == "tokens"
        for i, n in enumerate(t.lengths)
        if n == 0
    ]


def _asked_by_another_input(run: Run, birth: Birth) -> bool:
    """Queries of one input read keys of another one, which is empty: the sample holds something,
    and the model has to cope.
    """
    found = [(deep, a) for deep in run.deep for a in deep.attention if a.site == birth.site]
    if not found or any(a.queries == a.keys for _, a in found):
        return False
    for deep, attention in found:
        call = main_call(deep)
        rows = call.target.shape if call is not None and call.target is not None else ()
        if len(rows) != 1:
            return False  # what a decoder has read so far are the sample's own targets
        widths = {
            t.shape[1]
            for t in deep.tokens
            if t.role == "tokens" and len(t.shape) == 2 and t.shape[0] == rows[0]
        }
        if not widths.issuperset({attention.queries, attention.keys}):
            return False
    return True


def _void(run: Run) -> Finding | None:
    """A mean over no targets at all: the loss of a batch whose samples all have nothing to be
    learned.
    """
    calls = (run.samples or Samples()).void
    bad = [step for step, loss in enumerate(run.losses) if not math.isfinite(loss)]
    if not calls or not bad or limits.NONFINITE_STEPS.passed_by(len(bad) / run.num_steps):
        return None
    targets = ((run.samples or Samples()).rows or TokenRows()).targets
    if bad[0] != calls[0] and len(bad) > len(calls):
        return None
    if targets and not targets.empty_below:
        return None  # only rows that were cut have lost their targets
    known = (
        f"; of {targets.rows_below} uncut rows {targets.empty_below} have no target"
        if targets
        else ""
    )
    text = (
        f"no target of step {calls[0]} counts, and its loss is no number ({len(bad)} such "
        f"steps of {run.num_steps}){known}"
    )
    found = _empty(
        run,
        "Batches without a single target turn the loss into NaN",
        exact(text, 0, expected=1, signal="samples", steps=(bad[0],)),
    )
    return replace(found, where=locate(*_split(run), *found.where)[:4])


def _divides_by_empty_counts(birth: Birth) -> bool:
    """A division of finite values by whole numbers, nearly all of them above zero."""
    if birth.op not in DIVISIONS or len(birth.inputs) != 2:
        return False
    divisor = birth.inputs[1]
    counts = divisor.whole and divisor.min == 0 and (divisor.max or 0) >= 2
    if not counts or any(v.nonfinite for v in birth.inputs):
        return False
    share = divisor.zeros / max(1, math.prod(divisor.shape))
    return share > 0 and limits.ZERO_COUNTS.kept_by(share)


def _repeated(run: Run) -> Finding | None:
    given = [b for b in training_batches(run) if b.epoch == 0]
    calls_per_pass = len(given) / max(1, len({(b.step, b.microstep) for b in given}))
    if limits.MODEL_CALLS_PER_PASS.passed_by(calls_per_pass) and all(
        b.source == "model" for b in given
    ):
        # parts of a model are called one by one, or again and again: what they get are no samples
        return None
    first = _first_pass(given)
    prints = Counter(p for b in first for p in b.fingerprints)
    total = sum(prints.values())
    if total < MIN_SAMPLES or len(first) < MIN_BATCHES:
        return None
    (one, times), *_ = prints.most_common(1)
    others = total - times
    if len({b.fingerprints.index(one) for b in first if one in b.fingerprints}) == 1:
        return None  # always at one place of the batch: batches lie with time first
    if (
        others < MIN_OTHERS
        or not limits.REPEATED_SAMPLE.reached_by(times / total)
        or not limits.DISTINCT_OTHERS.reached_by((len(prints) - 1) / others)
    ):
        return None
    text = (
        f"one sample comes {times} times in {total} of the first epoch; the {others} others "
        f"are {len(prints) - 1} different ones"
    )
    return finding(
        "One and the same sample makes up much of the data",
        locate(*loader_sites(run), *_split(run), *feeding_sites(run))[:4],
        (counted(text, times, total, limits.REPEATED_SAMPLE, signal="batches"),),
        Fix(
            "Find out what stands behind the repeated sample (a file that failed to load, "
            "a default) and leave it out."
        ),
    )


def _blank(run: Run) -> Finding | None:
    """Empty rows by the dozen that stand alone: whole samples repeat, one for each label, and
    hardly any other does.
    """
    starts = ((run.samples or Samples()).rows or TokenRows()).starts
    share = starts.top.get(-1, 0) / max(starts.all, 1)
    given = [b for b in training_batches(run) if b.epoch == 0 and b.source != "model"]
    prints = Counter(p for b in given for p in b.fingerprints)
    total = sum(prints.values())
    often = [
        n
        for n in prints.values()
        if n >= MIN_REPEATS and limits.OFTEN_REPEATED.reached_by(n / total)
    ]
    others = total - sum(often)
    if not limits.EMPTY_ROWS.reached_by(share) or total < MIN_SAMPLES or others < MIN_OTHERS:
        return None
    # The one kind of repetition has to account for the other: as many repeated samples as empty
    # rows.
    if (
        len(often) > MAX_REPEATED
        or not limits.REPEATS_OFF_EMPTY.kept_by(abs(sum(often) / total / share - 1))
        or not limits.DISTINCT_OTHERS.reached_by((len(prints) - len(often)) / others)
    ):
        return None
    collected = lines_in(marked_lines(run, "append"), run.data_code.makes)
    text = (
        f"{share:.0%} of the rows are padding from end to end; the same {len(often)} samples "
        f"come {sum(often)} times in {total}"
    )
    return finding(
        "Many samples are empty",
        locate(*collected[-1:], *_split(run), *loader_sites(run), *feeding_sites(run))[:4],
        (compared(text, share, limits.EMPTY_ROWS, expected=0, signal="samples"),),
        Fix(
            "Leave samples without content out when the data set is built, and find out "
            "what emptied them."
        ),
    )


def _first_pass(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Up to where samples come again that are not the commonest: without a loader nothing else
    tells where an epoch ends.
    """
    prints = Counter(p for b in batches for p in b.fingerprints)
    common = {p for p, _ in prints.most_common(1)}
    seen: set[int] = set()
    for end, batch in enumerate(batches):
        others = set(batch.fingerprints) - common
        if (
            batch.source == "model"
            and len(others) >= 4
            and limits.SEEN_AGAIN.passed_by(len(others & seen) / len(others))
        ):
            return batches[:end]
        seen |= others
    return batches


def _empty(run: Run, title: str, reading: Evidence, at_most: str = "proven") -> Finding:
    """Named where samples are collected in the data set's own code, and where the loader gets
    them.
    """
    made = marked_lines(run, "append")
    collected = lines_in(made, run.data_code.makes)
    apart = outside_of_models(run, made)
    return finding(
        title,
        locate(*collected[-1:], *loader_sites(run), *apart[-1:], *feeding_sites(run))[:4],
        (reading,),
        Fix("Leave samples without content out when the data set is built."),
        at_most=at_most,
    )


def _split(run: Run) -> tuple[Site, ...]:
    """A split by hand: up to there the data is in one piece."""
    return data_lines(run, "split")[:1]
