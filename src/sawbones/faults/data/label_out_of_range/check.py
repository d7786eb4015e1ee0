"""Class labels outside of the range that the loss accepts, or one too high or too low throughout

## What it sees
The exception of the loss, the scores and targets it was given, and the batch in hand with the
smallest and largest value of every sample. Fires when a target lies outside of [0, C), where C is
the number of scores per target; says which samples carry it and whether the labels run from 1 to C.
Fires on the step of the crash; no second run is needed. Without a crash: fires when the labels of
all samples run from 1 to C - 1, each of them at least 8 times, and the first of C scores is never
asked for; or when they run from 0 to C - 2 on all of at least 3 deep steps, and what 0 becomes when
1 is subtracted (-1, or 255 in 8 bits) is ignored by the loss and as common as a class.

## Why it matters
The run dies at the first such sample, which may come hours after the start; on a GPU the error
names no line at all. When the head is made one score wider instead, the run goes on with a class
that does not exist, and every table of names is off by one. When 1 is subtracted from labels that
count from 0 already, the first class becomes the ignored one and is never learnt.

## Looks like
IndexError: Target 5 is out of bounds, or a device-side assert, at a step that changes with the
seed.

## Example
    loss = F.cross_entropy(model(x), stars)  # stars from 1 to 5, five scores

## Use instead
    loss = F.cross_entropy(model(x), stars - 1)

## Confirm it
Nothing is left to confirm: the value and the bound are in the record.

## False alarms
Targets equal to ignore_index are legal and never raise. Id 0 pads token targets by custom: losses
on tokens, with more targets than samples, with an ignored 0, or with as many scores as an embedding
has rows, are not looked at. A class that is merely rare is seen as often as others that are rare,
and there are never fewer than 3 scores. Positions without a label may be marked by -1 or 255, and
be many: as long as each of the C scores is asked for, nothing is missing.

## References
Labels that start at 1, a void class of 255 in segmentation, heads with one class too few, and
reduce_zero_label of image processors on masks without a background class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.evidence import NothingToJudge, compared, context, exact, finding, refused
from sawbones.evidence.limits import data as limits
from sawbones.schema import Finding, Fix, Run, Site
from sawbones.schema.loss import LossFacts
from sawbones.schema.samples import Samples
from sawbones.stats.failures import failure, samples_text, user_frames
from sawbones.stats.loss_calls import as_site, carrying
from sawbones.trace.feeding import data_sites, defaults, loader_sites, training_batches
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines

NEEDS = ("events",)
USES = ("samples", "source_lines", "loaders")
EXPLAINS = ("loss.wrong-loss", "evaluation.collapsed-prediction")
EXPERIMENT = None
LOSSES = (
    "cross_entropy",
    "nll_loss",
    "one_hot",
    "gather",
    "binary_cross_entropy",
    "multi_margin_loss",
)
# What torch says of such a label.
NAMED = re.compile(
    r"[Tt]arget (-?\d+) is out of bounds|index (-?\d+) is out of bounds for dimension \d+ "
    r"with size (\d+)"
)
UNNAMED = ("Class values must be", "all elements of target should be between 0 and 1")
WRONG_TYPE = ("expected scalar type Long but found", "nll_loss")
BINNING = ("digitize", "searchsorted", "bucketize", "cut", "qcut")
MAKING = frozenset({"tensor", "as_tensor", "stack", "cat", "to", "long", "sub", "add"})
MIN_LOOKS = 3  # deep steps: a class that none of them shows is not in the data
LOWERED = (-1, 255)  # 0 less 1, in signed numbers and in 8 bits without a sign
MIN_TIMES = 8  # of each label: that 0 never came would else be chance


def check(run: Run) -> Iterator[Finding]:
    if run.ending.kind == "exception":
        yield from _crashed(run)
        return
    lowered = _one_too_low(run)
    yield from (lowered,) if lowered is not None else _from_one(run)


def _one_too_low(run: Run) -> Finding | None:
    """Labels 0 to C - 2 under C scores, and the class that was 0 is ignored."""
    seen = [s for s in carrying(run) if s.facts.target_is_index and s.facts.target_counts]
    known = {(s.facts.num_classes or 0, s.facts.ignore_index) for s in seen}
    if len(seen) < MIN_LOOKS or len(known) != 1 or any(s.facts.copied_at is not None for s in seen):
        return None
    ((num, void),) = known
    labels: Counter[int] = Counter()
    for s in seen:
        labels.update(s.facts.target_counts)
    of_tokens = any(t.role == "tokens" for d in run.deep for t in d.tokens)
    if of_tokens or num < 3 or void not in LOWERED or set(labels) != {void, *range(num - 1)}:
        return None
    total, rare = sum(labels.values()), min(labels.values())
    evenness = rare * num / total
    if not limits.RAREST_LABEL.reached_by(evenness):
        return None
    made = data_lines(run, "label")
    text = (
        f"labels run from 0 to {num - 2} under {num} scores on {len(seen)} deep steps, and "
        f"{labels[void]} of {total} targets are {void}, which the loss ignores: as many as a class "
        "would have"
    )
    return finding(
        f"Labels are one too low: the first class became {void} and is ignored, the last of {num} "
        "scores is never a target",
        locate(*made[:1], *loader_sites(run)[::-1], *made[1:2], seen[0].built, seen[0].call)[:4],
        (compared(text, evenness, limits.RAREST_LABEL, expected=1, signal="loss_calls"),),
        Fix("Leave the labels as they are: do not subtract 1 from labels that count from 0."),
    )


def _from_one(run: Run) -> Iterator[Finding]:
    """Labels 1 to C - 1 under C scores."""
    seen = [s for s in carrying(run) if s.facts.target_is_index and s.facts.num_classes]
    widths = {s.facts.num_classes or 0 for s in seen}
    labels: Counter[int] = Counter()
    for call in (run.samples or Samples()).labels:
        labels.update(call)
    if len(widths) != 1 or not labels:
        raise NothingToJudge("no crash, and no labels under one number of scores")
    (num,) = widths
    if num < 3 or set(labels) != set(range(1, num)):
        return
    rows = max(
        (t["shape"][0] for b in training_batches(run)[:5] for t in b.tensors if t.get("shape")),
        default=0,
    )
    total, rare = sum(labels.values()), min(labels.values())
    # Shares decide, not counts: a full batch shows the same few labels at every step.
    evenness = rare * (num - 1) / total
    of_tokens = any(t.num_embeddings == num for d in run.deep for t in d.tokens) or any(
        _is_of_tokens(x.facts, rows) for x in seen
    )
    if of_tokens or rare < MIN_TIMES or not limits.RAREST_LABEL.reached_by(evenness):
        return
    made = data_lines(run, "label")
    called = next((s.call.site for s in seen if s.call.site is not None), None)
    text = (
        f"{total} labels run from 1 to {num - 1}, the rarest of them {rare} times; 0 does not occur"
    )
    yield finding(
        f"Labels count from 1: the first of {num} scores is never a target",
        locate(*made[:1], *loader_sites(run)[::-1], *made[1:2], called)[:4],
        (compared(text, evenness, limits.RAREST_LABEL, expected=1, signal="samples"),),
        Fix(f"Subtract 1 from the labels, and give the head {num - 1} scores."),
    )


def _is_of_tokens(facts: LossFacts, rows: int) -> bool:
    """Targets are ids of the input, or one for every position, or 0 stands for none."""
    return facts.ignore_index == 0 or facts.copied_at is not None or facts.target_num - rows > 0


def _crashed(run: Run) -> Iterator[Finding]:
    message = run.ending.message or ""
    failed = failure(run)
    named = NAMED.search(message)
    if not (failed is not None and failed.op in LOSSES) and not message.startswith("Target "):
        return
    if named is None and not any(words in message for words in UNNAMED):
        if failed is not None and all(words in message for words in WRONG_TYPE):
            yield _wrong_type(run, message)
        return
    size = _num_scores(run, named)
    value = int(named[1] or named[2]) if named is not None else None
    tensor, rows = _carriers(run, value, size)
    if value is None and tensor is not None:
        high, low = max(tensor["row_max"]), min(tensor["row_min"])
        value = int(high) if size is None or high >= size else int(low)
    if value is None:
        return  # what the loss was given is not known
    if failed is not None and failed.op == "gather" and tensor is None:
        return  # an index that no batch holds is no label: the model made it
    bound = f"[0, {size - 1}]" if size else "the range of classes"
    step = run.num_steps
    evidence = [
        refused(
            f"target {value} against {bound}: {message.splitlines()[0][:160]}",
            value=value,
            steps=(step,),
        )
    ]
    if tensor is not None:
        text = (
            f"{samples_text(run, tensor, rows)} carry it ({len(rows)} of {len(tensor['row_max'])})"
        )
        evidence.append(exact(text, len(rows), signal="crash", steps=(step,)))
    if value == size is not None and min(map(int, _labels_seen(run)), default=None) == 1:
        text = f"labels seen so far begin at 1 and end at {value}: they count from one"
        evidence.append(context(text, signal="batches", value=1, expected=0))
    marker = size is not None and not 0 <= value <= size + 1
    yield finding(
        f"Label {value} where the loss accepts {bound}",
        _where(run, marker, value),
        evidence,
        Fix(
            f"If {value} marks positions without a label, give the loss ignore_index={value}; "
            "otherwise map it to a class."
            if marker
            else "Let labels run from 0 to C - 1 (subtract 1 if they count from one), or give "
            "the head one score per label value."
        ),
    )


def _num_scores(run: Run, named: re.Match[str] | None) -> int | None:
    failed = failure(run)
    if named is not None and named[3]:
        return int(named[3])
    if failed is not None and failed.shapes and len(failed.shapes[0]) >= 2:
        return failed.shapes[0][1]
    for seen in reversed(carrying(run)):
        if seen.facts.num_classes:
            return int(seen.facts.num_classes)
    outputs = [m["outputs"] for m in run.ending.modules if m.get("outputs")]
    shape = outputs[-1][0][1] if outputs else []
    return int(shape[1]) if len(shape) >= 2 else None


def _carriers(
    run: Run, value: int | None, num_scores: int | None
) -> tuple[Mapping[str, Any] | None, list[int]]:
    """The tensor of the batch that holds the value, and its samples that do."""
    size = num_scores if num_scores is not None else value
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        high, low = tensor.get("row_max"), tensor.get("row_min")
        if not high or (value is not None and value not in (*high, *low)):
            continue
        rows = [
            i
            for i, (a, b) in enumerate(zip(low, high, strict=True))
            if a < 0 or (size is not None and b >= size) or b == value
        ]
        if rows:
            return tensor, rows
    return None, []


def _labels_seen(run: Run) -> set[str]:
    seen = {v for b in training_batches(run) for t in b.tensors for v in t.get("counts") or ()}
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        if len(tensor.get("shape") or ()) == 1:
            seen |= {str(v) for v in tensor.get("row_min") or ()}
    return seen


def _where(run: Run, marker: bool, value: int | None = None) -> tuple[Site, ...]:
    built = next((seen.built for seen in carrying(run) if seen.built is not None), None)
    called = next(iter(user_frames(run)), None) or run.ending.site
    made, loaders = _made_at(run), loader_sites(run)
    # what a label that is not in the table becomes
    looked_up = defaults(run, value) if value is not None else ()
    if looked_up:
        return locate(*looked_up[:1], *loaders[1:], called)[:4]
    if marker:
        return locate(built, called, *made[:2], *loaders)[:4]
    # values sorted into bins: one that lies on or past the last edge gets a bin of its own
    binned = data_lines(run, "label", names=BINNING)
    if binned:
        return locate(*binned[:1], *made[:1], *loaders[1:], called)[:4]
    if not made:  # labels made once, before the loop: no operator of a step shows them
        made = list(data_lines(run, "label"))
    return locate(*made[:1], *loaders[1:], *loaders[:1], called)[:4]


def _made_at(run: Run) -> list[Site | None]:
    """Where the last operators before the crash, and those of deep steps, made whole numbers."""
    failed = failure(run)
    if failed is None:
        return []
    made: list[Site | None] = []
    for op in failed.last:
        output: Mapping[str, Any] = next(iter(op.get("outputs") or ()), {})
        whole = str(output.get("dtype", "")).startswith("int")
        if op.get("name") in MAKING and not op.get("module") and whole:
            made.append(as_site(op.get("site")))
    return [*made, *(x for s in failed.shapes[1:2] for x in data_sites(run, s, MAKING))]


def _wrong_type(run: Run, message: str) -> Finding:
    return finding(
        "Labels have a type that the loss does not accept",
        _where(run, False),
        (refused(message.splitlines()[0][:200], steps=(run.num_steps,)),),
        Fix("Give class indices as int64: labels.long()."),
    )
