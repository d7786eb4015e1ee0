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
    rows = [encode(text) for text in texts]

## Use instead
    rows = [ids for ids in map(encode, texts) if ids]

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

from sawbones.schema import Batch, Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import (
    data_function,
    feeding_sites,
    lines_in,
    loader_sites,
    marked_lines,
    outside_of_models,
    sample_rows,
    training_batches,
)
from sawbones.stats.failures import Birth, failure, first_nonfinite
from sawbones.stats.loss_calls import places
from sawbones.stats.sequences import main_call

NEEDS = ("batches",)
EXPLAINS = (
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
_EMPTY = (
    "has to be greater than 0",
    "non-empty",
    "to have non-zero size",
    "zero-size",
    "Expected reduction dim",
    "0 elements",
)
REPEATED = 0.1
BLANK = 0.05


def check(run: Run) -> Iterator[Finding]:
    found = _crash(run) or _spoiled(run) or _void(run) or _repeated(run) or _blank(run)
    if found is not None:
        yield found


def _crash(run: Run) -> Finding | None:
    message = run.ending.message or ""
    if run.ending.kind != "exception" or not any(word in message for word in _EMPTY):
        return None
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        low, high = tensor.get("row_min") or [], tensor.get("row_max") or []
        rows = [i for i, (a, b) in enumerate(zip(low, high, strict=True)) if a == b == 0]
        lengths = len(tensor["shape"]) == 1 or tensor["shape"][1:] == [1]
        if 0 in tensor["shape"] or (rows and (lengths or tensor["shape"][-1] > 1)):
            failed = failure(run)
            text = (
                f"sample {rows[0]} of the batch" if rows else f"a tensor of shape {tensor['shape']}"
            )
            step = failed.step if failed is not None else run.num_steps
            return _finding(
                run,
                f"{text} is empty; then: {message.splitlines()[0][:160]}",
                step,
                "crash",
                "The script crashed on an empty sample",
            )
    return None


def _spoiled(run: Run) -> Finding | None:
    """An empty row on the very step whose forward made the first non-finite value."""
    birth, rows = first_nonfinite(run), sample_rows(run)
    if birth is None:
        return None
    if _count_of_zero(birth):
        text = (
            f"at step {birth.step} {birth.op} at {birth.site} divides by a count that is 0 "
            "for a few samples: they hold nothing"
        )
        return _finding(
            run, text, birth.step, "nonfinite", "An empty sample turned the loss into NaN"
        )
    hits = (
        [(call, row) for call, row in (rows or {}).get("empty") or () if call == birth.step]
        if rows
        else []
    )
    if not hits:
        for deep in run.deep:
            if deep.step == birth.step:
                hits += [
                    (deep.step, i)
                    for t in deep.tokens
                    if t.role == "tokens"
                    for i, n in enumerate(t.lengths)
                    if n == 0
                ]
    if not hits or any(
        (v.get("nonfinite") or 0) > 0 and v.get("is_parameter") for v in birth.inputs
    ):
        return None
    if _asked_by_another_input(run, birth):
        return None
    text = (
        f"sample {hits[0][1]} of step {birth.step} is all padding; {birth.op} at {birth.site} "
        "made the first non-finite value"
    )
    return _finding(run, text, birth.step, "samples", "An empty sample turned the loss into NaN")


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
        if not {attention.queries, attention.keys} <= widths:
            return False
    return True


def _void(run: Run) -> Finding | None:
    """A mean over no targets at all: the loss of a batch whose samples all have nothing to be
    learned.
    """
    calls = (run.facts.get("samples") or {}).get("void") or []
    bad = [step for step, loss in enumerate(run.losses) if not math.isfinite(loss)]
    if (
        not calls
        or not bad
        or len(bad) > 0.5 * run.num_steps
        or (bad[0] != calls[0] and len(bad) > len(calls))
    ):
        return None
    targets = (sample_rows(run) or {}).get("targets")
    if targets and not targets["empty_below"]:
        return None  # only rows that were cut have lost their targets
    split = outside_of_models(run, marked_lines(run, "split"))
    known = (
        f"; of {targets['rows_below']} uncut rows {targets['empty_below']} have no target"
        if targets
        else ""
    )
    text = (
        f"no target of step {calls[0]} counts, and its loss is no number ({len(bad)} such "
        f"steps of {run.num_steps}){known}"
    )
    found = _finding(
        run, text, bad[0], "samples", "Batches without a single target turn the loss into NaN"
    )
    return replace(found, where=places(*split[:1], *found.where)[:4])


def _count_of_zero(birth: Birth) -> bool:
    """A division of finite values by whole numbers, nearly all of them above zero."""
    if (
        birth.op not in ("div", "__truediv__", "true_divide", "div_", "__itruediv__", "divide")
        or len(birth.inputs) != 2
    ):
        return False
    divisor = birth.inputs[1]
    if (
        any((v.get("nonfinite") or 0) > 0 for v in birth.inputs)
        or not divisor.get("whole")
        or divisor.get("min") != 0.0
    ):
        return False
    size = math.prod(divisor.get("shape") or ())
    return bool((divisor.get("max") or 0) >= 2 and 0 < divisor.get("zeros", 0) <= 0.2 * size)


def _repeated(run: Run) -> Finding | None:
    given = [b for b in training_batches(run) if b.epoch == 0]
    if len(given) > 1.5 * len({(b.step, b.microstep) for b in given}) and all(
        b.source == "model" for b in given
    ):
        # parts of a model are called one by one, or again and again: what they get are no samples
        return None
    first = _first_pass(given)
    prints = Counter(p for b in first for p in b.fingerprints)
    total = sum(prints.values())
    if total < 100 or len(first) < 4:
        return None
    (_, times), *_ = prints.most_common(1)
    others = total - times
    if times / total < REPEATED or others < 50 or (len(prints) - 1) / others < 0.9:
        return None
    split = outside_of_models(
        run, marked_lines(run, "split")
    )  # by hand: up to there the data is in one piece
    where = places(*loader_sites(run), *split[:1], *feeding_sites(run))[:4]
    text = (
        f"one sample comes {times} times in {total} of the first epoch; the {others} others "
        f"are {len(prints) - 1} different ones"
    )
    return Finding(
        "data.degenerate-samples",
        "likely",
        0.85,
        "One and the same sample makes up much of the data",
        where,
        (Evidence(text, "batches", value=times / total, expected=1.0 / total),),
        Fix(
            "Find out what stands behind the repeated sample (a file that failed to load, "
            "a default) and leave it out."
        ),
    )


def _blank(run: Run) -> Finding | None:
    """Empty rows by the dozen that stand alone: whole samples repeat, one for each label, and
    hardly any other does.
    """
    starts = (sample_rows(run) or {}).get("starts") or {}
    share = starts.get("-1", 0) / max(starts.get("all", 0), 1)
    given = [b for b in training_batches(run) if b.epoch == 0 and b.source != "model"]
    prints = Counter(p for b in given for p in b.fingerprints)
    total = sum(prints.values())
    often = [n for n in prints.values() if n >= max(4, 0.002 * total)]
    others = total - sum(often)
    if share < BLANK or total < 100 or others < 50 or len(often) > 40:
        return None
    # The one kind of repetition has to account for the other: as many repeated samples as empty
    # rows.
    if (
        not 0.7 * share <= sum(often) / total <= 1.3 * share
        or (len(prints) - len(often)) / others < 0.9
    ):
        return None
    split = outside_of_models(run, marked_lines(run, "split"))
    collected = lines_in(marked_lines(run, "append"), data_function(run, "makes"))
    text = (
        f"{share:.0%} of the rows are padding from end to end; the same {len(often)} samples "
        f"come {sum(often)} times in {total}"
    )
    return Finding(
        "data.degenerate-samples",
        "likely",
        0.85,
        "Many samples are empty",
        places(*collected[-1:], *split[:1], *loader_sites(run), *feeding_sites(run))[:4],
        (Evidence(text, "samples", value=share, expected=0.0),),
        Fix(
            "Leave samples without content out when the data set is built, and find out "
            "what emptied them."
        ),
    )


def _first_pass(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Up to where samples come again that are not the commonest: without a loader nothing else
    tells where an epoch ends.
    """
    common = next(
        (p for p, _ in Counter(p for b in batches for p in b.fingerprints).most_common(1)), None
    )
    seen: set[int] = set()
    for end, batch in enumerate(batches):
        others = {p for p in batch.fingerprints if p != common}
        if batch.source == "model" and len(others) >= 4 and len(others & seen) > 0.3 * len(others):
            return batches[:end]
        seen |= others
    return batches


def _finding(run: Run, text: str, step: int, signal: str, title: str) -> Finding:
    return Finding(
        "data.degenerate-samples",
        "proven",
        0.98,
        title,
        _where(run),
        (Evidence(text, signal, (step,), 0.0, 1.0),),
        Fix("Leave samples without content out when the data set is built."),
    )


def _where(run: Run) -> tuple[Site, ...]:
    """Where samples are collected in the data set's own code, and where the loader gets them."""
    collected = lines_in(marked_lines(run, "append"), data_function(run, "makes"))
    made = outside_of_models(run, marked_lines(run, "append"))
    return places(*collected[-1:], *loader_sites(run), *made[-1:], *feeding_sites(run))[:4]
