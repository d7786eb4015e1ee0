"""Batch means averaged over batches of unequal size

## What it sees
Numbers read off in evaluations (`.item()`) that are means over a batch, of how many values, and
what the script prints afterwards. Fires when at two evaluations the plain mean of these is printed
and the mean over all values is not, while one batch is at most 60 % of another and the two means
differ by 2 % somewhere; also when roots or exponentials of batch means are averaged. Where that
cannot be followed, a loader whose last batch is at most 60 % of the others is suspected, until the
experiment has decided; so are outputs that leave torch batch by batch beside scikit-learn and are
never put together. Answers
and labels of an evaluation are scored again beside the script: it is likely when at two evaluations
or more the score of the last batch alone is printed, or hits over batches or over full batches; so
it is when a mean of every batch is computed and that of the last one alone is ever read, or when
means of batches are added up and what is printed is that sum over the number of samples.

## Why it matters
Samples of the last batch count several times as much as the others, and the score depends on the
batch size of the evaluation.

## Looks like
The same checkpoint gives another score when it is evaluated with another batch size.

## Example
    score = sum(accuracy(model(x), y).item() for x, y in loader) / len(loader)

## Use instead
    parts = [(accuracy(model(x), y).item() * len(y), len(y)) for x, y in loader]
    score = sum(hits for hits, _ in parts) / sum(count for _, count in parts)

## Confirm it
The script runs again with evaluation loaders of batch size 1. Training is the same bit for bit;
confirmed when a printed score changes by more than rounding, refuted when none does.

## False alarms
Sums and weighted means do not change with the batch size: refuted, so never shown. Means over parts
of one and the same output, as the recalls of single classes whose plain mean is the balanced
accuracy, are no batches. Equal batches
and one single batch stay silent, and so do padded sequences, where a mean over tokens weighted by
samples is a matter of taste.

## References
The documentation of torchmetrics on why batch values must not be averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sawbones.evidence import NothingToJudge, batch_means, compared, context, exact, finding
from sawbones.evidence import rescoring as scores
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import evaluation as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.schema.evaluation import Node
from sawbones.stats.evaluations import READS, made_by, printed_numbers
from sawbones.stats.splits import told_apart
from sawbones.trace.locate import locate

NEEDS = ("batches", "validation", "evaluation")
USES = ("metric_libraries",)
EXPLAINS = ()
EXPERIMENT = "evaluation_batch_size"
WHOLE_READS = ("tolist", "numpy", "__array__")
ARRAY_READS = ("numpy", "__array__")  # lists are put behind one another, and scored as a whole
MAX_EXPONENT = 50  # so that exp() of a loss does not overflow
WEIGH = Fix(
    "Sum over samples and divide by their number: multiply each batch mean by the size of its "
    "batch."
)


class Averaged(NamedTuple):
    """One evaluation: whether the plain mean was printed and the weighted one was not."""

    wrong: bool
    plain: float
    weighted: float
    smallest: int
    largest: int

    @property
    def apart(self) -> float:
        """Where both means are the same, as of a score that has reached its top, what is printed
        tells nothing.
        """
        return abs(self.plain - self.weighted) / max(abs(self.weighted), TINY)


def check(run: Run) -> Iterator[Finding]:
    everything = run.evaluation.nodes
    if not any(node.op in READS for node in everything) and not scores.is_scored(run):
        raise NothingToJudge("no number is read off in an evaluation")
    averaged = {node.id: _evaluations(run, node, everything) for node in everything}
    found = [*_printed(everything, averaged), *_scored_again(run), *_last_alone(run, everything)]
    found = found or list(_divided(run, everything))
    if found or _weighted(run, averaged):
        yield from found[:1]
        return
    loaders = _loaders(run)
    if not loaders:
        return
    yield from (
        list(_by_library(run, everything, loaders))[:1]
        or list(_unequal_batches(run, everything, loaders))[:1]
    )


_MISTAKES = {
    scores.LAST_BATCH: (
        "The score of the last batch is taken for that of all",
        "the share of right answers of the last batch",
        Fix("Sum hits and samples over all batches: set both to 0 before the loop, not inside."),
    ),
    scores.HITS_PER_BATCH: (
        "Hits are divided by the number of batches",
        "the number of right answers per batch",
        Fix("Divide the hits by the number of samples."),
    ),
    scores.TRAINING_ROWS: (
        "Hits of the evaluation are divided by the number of training samples",
        "the number of right answers over the samples of training",
        Fix("Divide the hits by the number of samples that were evaluated."),
    ),
    scores.FULL_BATCHES: (
        "Hits are divided as if every batch were full",
        "the share of right answers with the last batch taken for a full one",
        Fix("Divide the hits by the number of samples that were seen."),
    ),
}


def _scored_again(run: Run) -> Iterator[Finding]:
    found = scores.misscored(run, tuple(_MISTAKES))
    if found is None:
        return
    title, what, fix = _MISTAKES[found.mistake]
    reading = exact(
        f"printed is {found.printed:.6g}, {what}; over all {found.rows} samples of "
        f"{found.calls} batches it is {found.right:.6g}",
        found.printed,
        expected=found.right,
        signal="evaluation",
        steps=found.steps[:5],
    )
    yield finding(title, locate(found), (reading,), fix, at_most="likely")


_DIVIDED = {
    batch_means.OVER_SAMPLES: (
        "Means of batches are added up and divided by the number of samples",
        "the sum of {batches} batch means over {samples} samples",
        Fix(
            "Divide the sum of batch means by the number of batches, or multiply each mean by the "
            "size of its batch."
        ),
    ),
    batch_means.OVER_BATCHES: (
        "Sums over samples are divided by the number of batches",
        "the sum over {samples} samples over {batches} batches",
        Fix("Divide by the number of samples."),
    ),
}


def _divided(run: Run, everything: Sequence[Node]) -> Iterator[Finding]:
    by_id = {n.id: n for n in everything}
    for node in everything:
        made = [m for m in _read_off(node, by_id) if _is_mean(m)]
        found = batch_means.misdivided(run, node) if made else None
        if found is None:
            continue
        title, what, fix = _DIVIDED[found.mistake]
        what = what.format(samples=found.samples, batches=found.batches)
        reading = exact(
            f"printed is {found.printed:.6g}, {what}; the mean is {found.right:.6g}",
            found.printed,
            expected=found.right,
            signal="evaluation",
            steps=found.steps[:5],
        )
        yield finding(title, locate(node, made[0]), (reading,), fix, at_most="likely")
        return


def _last_alone(run: Run, everything: Sequence[Node]) -> Iterator[Finding]:
    """A mean of each batch is computed, and that of the last one is all that is used."""
    for node, last in scores.last_alone(run, everything):
        yield finding(
            "The score of the last batch is taken for that of all",
            locate(node, last.made),
            (
                exact(
                    f"{last.made.op} is computed for each of {last.calls} batches and read off "
                    f"once, after the last of them ({last.value:.6g}), in {len(last.steps)} "
                    "evaluations",
                    1,
                    expected=last.calls,
                    signal="evaluation",
                    steps=last.steps[:5],
                ),
            ),
            Fix("Add up what each batch gives, weighed by its size, and divide by the samples."),
            at_most="likely",
        )
        return


def _unequal_batches(run: Run, everything: Sequence[Node], loaders: list[int]) -> Iterator[Finding]:
    sizes = _unequal(run)
    padded = any(limits.PADDED_TOKENS.passed_by(t.pad_share) for d in run.deep for t in d.tokens)
    if sizes is None or padded:
        return
    by_id = {n.id: n for n in everything}
    for node in everything:
        single = node.op in READS and node.op not in WHOLE_READS
        if not single or "output" not in node.roles or not _several_per_step(node):
            continue
        sources = [by_id[s] for s in node.sources if s in by_id]
        means = [m for m in sources if _is_mean(m) and _by_sample(m, sizes, everything)]
        if not means:
            continue
        text = (
            f"a mean over each batch is read off; batches have {sizes[0]} samples, the last "
            f"one {sizes[1]}"
        )
        reading = compared(
            text,
            sizes[1],
            limits.UNEQUAL_BATCHES,
            below=True,
            against=sizes[0],
            signal="evaluation",
            steps=node.steps[:3],
        )
        yield finding(
            "Means of unequal batches are averaged",
            locate(node, means[0]),
            (reading,),
            WEIGH,
            at_most="suspected",
            params={"loaders": loaders},
        )


def _several_per_step(node: Node) -> bool:
    return bool(node.steps) and node.count >= 2 * max(node.num_steps, len(node.steps))


def _printed(
    everything: Sequence[Node], averaged: Mapping[int, Mapping[int, Averaged]]
) -> Iterator[Finding]:
    """What is printed after an evaluation is the plain mean of numbers that stand for different
    numbers of samples.
    """
    by_id = {n.id: n for n in everything}
    for node in everything:
        means = [m for m in _read_off(node, by_id) if _is_mean(m)]
        if not means or any(_ignores(m) for m in means):
            continue
        all_steps = averaged[node.id].values()
        wrong = [a for a in all_steps if a.wrong]
        telling = [a for a in all_steps if a.wrong or limits.MEANS_DIFFER.passed_by(a.apart)]
        if (
            len(wrong) < 2
            or not limits.WRONG_EVALUATIONS.reached_by(len(wrong) / len(telling))
            or not limits.MEANS_APART.reached_by(max(a.apart for a in wrong))
        ):
            continue
        last = wrong[-1]
        text = (
            f"printed is {last.plain:.6g}, the plain mean over the batches; over all samples it is "
            f"{last.weighted:.6g}"
        )
        yield finding(
            "Means of unequal batches are averaged",
            locate(node, means[0]),
            (
                exact(
                    text,
                    last.plain,
                    expected=last.weighted,
                    signal="evaluation",
                    steps=node.steps[:3],
                ),
                context(
                    f"the batches hold between {last.smallest} and {last.largest} values",
                    signal="evaluation",
                    value=last.smallest,
                    expected=last.largest,
                ),
            ),
            WEIGH,
        )


def _by_library(run: Run, everything: Sequence[Node], loaders: list[int]) -> Iterator[Finding]:
    """Outputs of every batch go to a library of metrics: whether its scores are averaged then, only
    the experiment can tell.
    """
    calls = [p.calls for p in run.evaluation.passes]
    joined = any(n.op == "cat" and "output" in n.roles for n in everything)
    if "sklearn.metrics" not in run.metric_libraries or max(calls, default=0) < 2 or joined:
        return
    for node in everything:
        batch_by_batch = _several_per_step(node) and 2 * node.count >= sum(calls)
        if node.op in ARRAY_READS and "output" in node.roles and batch_by_batch:
            text = (
                f"outputs leave torch batch by batch, {node.count} times in {max(node.num_steps, len(node.steps))} "
                "evaluations, beside sklearn"
            )
            yield finding(
                "Scores of single batches are averaged",
                locate(node),
                (context(text, signal="evaluation", steps=node.steps[:3]),),
                Fix("Collect predictions and targets of all batches, and compute the score once."),
                params={"loaders": loaders},
            )


def _weighted(run: Run, averaged: Mapping[int, Mapping[int, Averaged]]) -> bool:
    """The mean over all values of something is what was printed: the script does weigh its
    batches.
    """
    return any(
        not told.wrong
        and limits.MEANS_DIFFER.passed_by(told.apart)
        and _is_printed(printed_numbers(run, step), told.weighted)
        for by_step in averaged.values()
        for step, told in by_step.items()
    )


def _read_off(node: Node, by_id: Mapping[int, Node]) -> list[Node]:
    """What a number was read off from, a root or an exponential passed over."""
    found = []
    for source in (by_id[s] for s in node.sources if s in by_id):
        bent = source.op.rstrip("_") in ("sqrt", "exp")
        found += [by_id[s] for s in source.sources if s in by_id] if bent else [source]
    return found


def _evaluations(run: Run, node: Node, everything: Sequence[Node]) -> dict[int, Averaged]:
    """By step: the two means of what was read off in one evaluation."""
    by_torch = {n.op for n in everything if n.id in node.sources}
    found: dict[int, Averaged] = {}
    for step in dict.fromkeys(at for at, _, _ in node.reads):
        reads = [(value, size) for at, value, size in node.reads if at == step]
        values, sizes = np.array([v for v, _ in reads]), np.array([n for _, n in reads], float)
        if len(reads) < 2 or sizes.min() < 1 or not _one_per_call(node, step):
            continue
        numbers = printed_numbers(run, step)
        told = _bent(values, sizes, numbers, by_torch)
        if told is None and limits.UNEQUAL_BATCHES.kept_by(sizes.min() / sizes.max()):
            told = _straight(values, sizes, numbers)
        if told is not None:
            found[step] = Averaged(*told, int(sizes.min()), int(sizes.max()))
    return found


def _one_per_call(node: Node, step: int) -> bool:
    """Each number is of a batch of its own. Several after one and the same call are of its parts,
    as the recalls of the classes, whose plain mean is the balanced accuracy.
    """
    if len(node.read_calls) != len(node.reads):
        return True  # recorded before this was noted
    calls = [
        call for (at, _, _), call in zip(node.reads, node.read_calls, strict=True) if at == step
    ]
    return len(set(calls)) == len(calls)


_Floats = npt.NDArray[np.float64]
_Numbers = Sequence[tuple[float, float]]  # each with the unit of its last digit
_Said = tuple[bool, float, float]


def _straight(values: _Floats, sizes: _Floats, numbers: _Numbers) -> _Said:
    plain, weighted = float(values.mean()), float(np.average(values, weights=sizes))
    changes: tuple[Callable[[float], float], ...] = (
        lambda v: v,
        lambda v: 100 * v,
        lambda v: math.exp(min(v, MAX_EXPONENT)),
        lambda v: 1 - v,
    )
    for change in changes:
        wrong = _wrongly_printed(numbers, change(plain), change(weighted))
        if wrong is not None:
            return wrong, change(plain), change(weighted)
    return False, plain, weighted


def _bent(values: _Floats, sizes: _Floats, numbers: _Numbers, by_torch: set[str]) -> _Said | None:
    """A root or an exponential of each batch's mean is averaged: that is not the root of the mean,
    however large the batches.
    """
    for name, bend, straighten in (
        ("sqrt", np.sqrt, np.square),
        ("exp", lambda v: np.exp(np.minimum(v, MAX_EXPONENT)), np.log),
    ):
        done = name in by_torch
        lowest = 0 if done or name == "sqrt" else -MAX_EXPONENT
        if values.min() - lowest <= 0:
            continue
        plain = float(np.mean(values if done else bend(values)))
        whole = float(bend(np.average(straighten(values) if done else values, weights=sizes)))
        wrong = _wrongly_printed(numbers, plain, whole)
        if wrong is not None:
            return wrong, plain, whole
    return None


def _wrongly_printed(numbers: _Numbers, wrong: float, right: float) -> bool | None:
    """`wrong` was printed: whether `right` was not. None where it was not printed, or prints like
    `right`.
    """
    for number, unit in numbers:
        if limits.PRINTED_APART.passed_by(abs(wrong - right) / unit) and _is_printed(
            [(number, unit)], wrong
        ):
            return not _is_printed(numbers, right)
    return None


def _is_printed(numbers: _Numbers, value: float) -> bool:
    return any(limits.PRINTED_AS.kept_by(abs(number - value) / unit) for number, unit in numbers)


def _ignores(node: Node) -> bool:
    """A loss that leaves targets out is a mean over fewer values than it was given."""
    named = [str(a).partition("=")[2] for a in node.args if str(a).startswith("ignore_index=")]
    index = int(named[0]) if named and named[0].lstrip("-").isdigit() else -100
    whole = [g for g in node.given[1:2] if g.dtype.startswith("int") and g.num]
    return any(g.min <= index <= g.max for g in whole)


def _is_mean(node: Node) -> bool:
    if node.op in ("mean", "nanmean", "div"):
        return True
    loss = node.op.endswith("_loss") or "cross_entropy" in node.op
    return loss and not any(a in ("reduction=sum", "reduction=none") for a in node.args)


def _by_sample(node: Node, sizes: tuple[int, int], everything: Sequence[Node]) -> bool:
    """The mean is over samples. One over tokens of padded sequences is a matter of taste."""
    given = (g for n in (node, *made_by(everything, node)) for g in n.given)
    shapes = (shape for g in given for shape in g.shapes)
    return any(shape and shape[0] in sizes and len(shape) <= 2 for shape in shapes)


def _loaders(run: Run) -> list[int]:
    """Loaders that are evaluated and never trained on."""
    trained, evaluated = told_apart(run)
    sources = {b.source for b in evaluated} - {b.source for b in trained} - {"model"}
    return sorted(int(s.removeprefix("loader:")) for s in sources)


def _unequal(run: Run) -> tuple[int, int] | None:
    """(samples of the first, of the last batch) of a pass whose last is much smaller."""
    _, evaluated = told_apart(run)
    by_pass: dict[tuple[str, int, int], list[int]] = {}
    for batch in evaluated:
        if batch.source != "model" and batch.fingerprints:
            key = (batch.source, batch.epoch, batch.step)
            by_pass.setdefault(key, []).append(len(batch.fingerprints))
    for sizes in by_pass.values():
        if len(sizes) >= 2 and limits.UNEQUAL_BATCHES.kept_by(sizes[-1] / sizes[0]):
            return sizes[0], sizes[-1]
    return None
