"""Class labels outside of the range that the loss accepts, or one too high throughout

## What it sees
The exception of the loss, the scores and targets it was given, and the batch in hand with the
smallest and largest value of every sample. Fires when a target lies outside of [0, C), where C is
the number of scores per target; says which samples carry it and whether the labels run from 1 to C.
Fires on the step of the crash; no second run is needed. Without a crash: fires when the labels of
all samples run from 1 to C - 1, each of them at least 8 times, and the first of C scores is never
asked for.

## Why it matters
The run dies at the first such sample, which may come hours after the start; on a GPU the error
names no line at all. When the head is made one score wider instead, the run goes on with a class
that does not exist, and every table of names is off by one.

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
and there are never fewer than 3 scores.

## References
Labels that start at 1, a void class of 255 in segmentation, and heads with one class too few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import (
    defaults,
    loader_sites,
    marked_lines,
    outside_of_models,
    training_batches,
)
from sawbones.stats.failures import failure, user_frames
from sawbones.stats.loss_calls import as_site, carrying, data_sites, places

NEEDS = ("events",)
EXPLAINS = ("loss.wrong-loss", "evaluation.collapsed-prediction")
EXPERIMENT = None
_LOSSES = (
    "cross_entropy",
    "nll_loss",
    "one_hot",
    "gather",
    "binary_cross_entropy",
    "multi_margin_loss",
)
_VALUE = re.compile(
    r"[Tt]arget (-?\d+) is out of bounds|index (-?\d+) is out of bounds for dimension \d+ "
    r"with size (\d+)"
)
_WORDS = ("Class values must be", "all elements of target should be between 0 and 1")
_TYPES = ("expected scalar type Long but found", "nll_loss")
_BINNING = ("digitize", "searchsorted", "bucketize", "cut", "qcut")
_MAKING = frozenset({"tensor", "as_tensor", "stack", "cat", "to", "long", "sub", "add"})


def check(run: Run) -> Iterator[Finding]:
    yield from _crashed(run) if run.ending.kind == "exception" else _from_one(run)


def _from_one(run: Run) -> Iterator[Finding]:
    """Labels 1 to C - 1 under C scores."""
    seen = [
        s for s in carrying(run) if s.facts.get("target_is_index") and s.facts.get("num_classes")
    ]
    widths = {int(s.facts["num_classes"]) for s in seen}
    counted: Counter[str] = Counter()
    for call in (run.facts.get("samples") or {}).get("labels") or ():
        counted.update(call)
    total = sum(counted.values())
    if (
        len(widths) != 1
        or (num := widths.pop()) < 3
        or set(counted) != {str(k) for k in range(1, num)}
    ):
        return
    rows = max(
        (t["shape"][0] for b in training_batches(run)[:5] for t in b.tensors if t.get("shape")),
        default=0,
    )
    # Shares decide, not counts: a full batch shows the same few labels at every step.
    rare = min(counted.values())
    of_tokens = any(t.num_embeddings == num for d in run.deep for t in d.tokens) or any(
        _is_of_tokens(x.facts, rows) for x in seen
    )
    if of_tokens or rare < 8 or rare < 0.2 * total / (num - 1):
        return
    made = outside_of_models(run, marked_lines(run, "label"))
    called = next((s.call.site for s in seen if s.call.site is not None), None)
    yield Finding(
        "data.label-out-of-range",
        "likely",
        0.88,
        f"Labels count from 1: the first of {num} scores is never a target",
        places(*made[:1], *loader_sites(run)[::-1], *made[1:2], called)[:4],
        (
            Evidence(
                (
                    f"{total} labels run from 1 to {num - 1}, the rarest of them {rare} "
                    "times; 0 does not occur"
                ),
                "samples",
                value=0.0,
                expected=total / num,
            ),
        ),
        Fix(f"Subtract 1 from the labels, and give the head {num - 1} scores."),
    )


def _is_of_tokens(facts: Mapping[str, Any], rows: int) -> bool:
    """Targets are ids of the input, or one for every position, or 0 stands for none."""
    return (
        facts.get("ignore_index") == 0
        or facts.get("copied_at") is not None
        or (facts.get("target_num") or 0) > rows
    )


def _crashed(run: Run) -> Iterator[Finding]:
    message = run.ending.message or ""
    failed = failure(run)
    named = _VALUE.search(message)
    in_loss = (failed is not None and failed.op in _LOSSES) or message.startswith("Target ")
    if not in_loss or (named is None and not any(w in message for w in _WORDS)):
        if in_loss and failed is not None and all(w in message for w in _TYPES):
            yield _wrong_type(run, message)
        return
    value = int(next(g for g in named.groups()[:2] if g is not None)) if named is not None else None
    num_classes = _num_classes(run, named)
    tensor, rows = _carriers(run, value, num_classes)
    if value is None and tensor is not None:
        value = (
            int(max(tensor["row_max"]))
            if num_classes is None or max(tensor["row_max"]) >= num_classes
            else int(min(tensor["row_min"]))
        )
    low = min((int(v) for v in _seen(run)), default=None)
    from_one = low == 1 and value is not None and value == num_classes
    bound = f"[0, {num_classes - 1}]" if num_classes else "the range of classes"
    evidence = [
        Evidence(
            f"target {value} against {bound}: {message.splitlines()[0][:160]}",
            "crash",
            (run.num_steps,),
            float(value or 0),
        )
    ]
    if rows:
        text = (
            f"samples {rows[:8]} of the batch carry it ({len(rows)} of "
            f"{len(tensor['row_max']) if tensor else 0})"
        )
        evidence.append(Evidence(text, "crash", (run.num_steps,), float(len(rows)), 0.0))
    if from_one:
        evidence.append(
            Evidence(
                f"labels seen so far begin at 1 and end at {value}: they count from one",
                "batches",
                value=1.0,
                expected=0.0,
            )
        )
    marker = (
        value is not None and num_classes is not None and (value < 0 or value > num_classes + 1)
    )
    yield Finding(
        "data.label-out-of-range",
        "proven",
        0.98,
        f"Label {value} where the loss accepts {bound}",
        _where(run, marker, value),
        tuple(evidence),
        Fix(
            (
                f"If {value} marks positions without a label, give the loss "
                f"ignore_index={value}; otherwise map it to a class."
            )
            if marker
            else (
                "Let labels run from 0 to C - 1 (subtract 1 if they count from one), or give "
                "the head one score per label value."
            )
        ),
    )


def _num_classes(run: Run, named: re.Match[str] | None) -> int | None:
    failed = failure(run)
    if named is not None and named.group(3):
        return int(named.group(3))
    if failed is not None and failed.shapes and len(failed.shapes[0]) >= 2:
        return failed.shapes[0][1]
    for seen in reversed(carrying(run)):
        if seen.facts.get("num_classes"):
            return int(seen.facts["num_classes"])
    outputs = [m.get("outputs") for m in run.ending.modules if m.get("outputs")]
    shape = outputs[-1][0][1] if outputs and outputs[-1] else []
    return int(shape[1]) if len(shape) >= 2 else None


def _carriers(
    run: Run, value: int | None, num_classes: int | None
) -> tuple[Mapping[str, Any] | None, list[int]]:
    """The tensor of the batch that holds the value, and its samples that do."""
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        high, low = tensor.get("row_max"), tensor.get("row_min")
        if not high or (value is not None and value not in (*high, *low)):
            continue
        top = num_classes if num_classes is not None else value
        rows = [
            i
            for i, (a, b) in enumerate(zip(low, high, strict=True))
            if a < 0 or (top is not None and b >= top) or b == value
        ]
        if rows:
            return tensor, rows
    return None, []


def _seen(run: Run) -> set[str]:
    seen: set[str] = set()
    for batch in training_batches(run):
        for tensor in batch.tensors:
            seen.update((tensor.get("counts") or {}).keys())
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        if len(tensor.get("shape") or ()) == 1 and tensor.get("row_min"):
            seen.update(str(v) for v in tensor["row_min"])
    return seen


def _where(run: Run, marker: bool, value: int | None = None) -> tuple[Site, ...]:
    built = next((seen.built for seen in carrying(run) if seen.built is not None), None)
    failed = failure(run)
    called = next(iter(user_frames(run)), None) or run.ending.site
    made: list[Site | None] = []
    for op in failed.last if failed is not None else ():
        outputs = op.get("outputs") or ()
        if (
            op.get("name") in _MAKING
            and not op.get("module")
            and outputs
            and str(outputs[0].get("dtype", "")).startswith("int")
        ):
            made.append(as_site(op.get("site")))
    if failed is not None and len(failed.shapes) > 1:
        made += data_sites(run, failed.shapes[1], _MAKING)
    loaders = loader_sites(run)
    looked_up = (
        defaults(run, value) if value is not None else ()
    )  # what a label that is not in the table becomes
    if looked_up:
        return places(*looked_up[:1], *loaders[1:], called)[:4]
    if marker:
        return places(built, called, *made[:2], *loaders)[:4]
    binned = outside_of_models(run, marked_lines(run, "label", names=_BINNING))
    if (
        binned
    ):  # values sorted into bins: one that lies on or past the last edge gets a bin of its own
        return places(*binned[:1], *made[:1], *loaders[1:], called)[:4]
    if not made:  # labels made once, before the loop: no operator of a step shows them
        made = list(outside_of_models(run, marked_lines(run, "label")))
    return places(*made[:1], *loaders[1:], *loaders[:1], called)[:4]


def _wrong_type(run: Run, message: str) -> Finding:
    return Finding(
        "data.label-out-of-range",
        "proven",
        0.95,
        "Labels have a type that the loss does not accept",
        _where(run, False),
        (Evidence(message.splitlines()[0][:200], "crash", (run.num_steps,)),),
        Fix("Give class indices as int64: labels.long()."),
    )
