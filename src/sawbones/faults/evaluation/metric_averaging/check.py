"""Batch means averaged over batches of unequal size

## What it sees
Numbers read off in evaluations (`.item()`) that are means over a batch, of how many values, and
what the script prints afterwards. Fires when at two evaluations the plain mean of these is printed
and the mean over all values is not, while one batch is at most 60 % of another and the two means
differ by 2 % somewhere; also when roots or exponentials of batch means are averaged. Where that
cannot be followed, a loader whose last batch is at most 60 % of the others is suspected, until the
experiment has decided; so are outputs that leave torch batch by batch beside scikit-learn.

## Why it matters
Samples of the last batch count several times as much as the others, and the score depends on the
batch size of the evaluation.

## Looks like
The same checkpoint gives another score when it is evaluated with another batch size.

## Example
    score = sum(accuracy(model(x), y).item() for x, y in loader) / len(loader)

## Use instead
    score = sum(accuracy(model(x), y).item() * len(y) for x, y in loader) / len(loader.dataset)

## Confirm it
The script runs again with evaluation loaders of batch size 1. Training is the same bit for bit;
confirmed when a printed score changes by more than rounding, refuted when none does.

## False alarms
Sums and weighted means do not change with the batch size: refuted, so never shown. Equal batches
and one single batch stay silent, and so do padded sequences, where a mean over tokens weighted by
samples is a matter of taste.

## References
The documentation of torchmetrics on why batch values must not be averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.evaluations import READS, Node, made_by, nodes, passes, printed_numbers
from sawbones.stats.splits import told_apart

NEEDS = ("batches", "validation", "evaluation")
EXPLAINS = ()
EXPERIMENT = "evaluation_batch_size"
UNEQUAL = 0.6
BENT = ("sqrt", "sqrt_", "exp", "exp_")
MATTERS = 0.02  # by which the two means differ at some evaluation


def check(run: Run) -> Iterator[Finding]:
    found = _printed(run)
    if found is not None:
        yield found
        return
    if _weighted(run):
        return
    per_batch = _by_library(run)
    if per_batch is not None:
        yield per_batch
        return
    sizes = _unequal(run)
    padded = any(t.pad_share > 0.02 for d in run.deep for t in d.tokens)
    if sizes is None or padded or not _loaders(run):
        return
    everything = nodes(run)
    by_id = {n.id: n for n in everything}
    for node in everything:
        if (
            node.op not in READS
            or node.op in ("tolist", "numpy", "__array__")
            or "output" not in node.roles
        ):
            continue
        means = [
            by_id[s] for s in node.sources if s in by_id and _is_mean(by_id[s].op, by_id[s].args)
        ]
        means = [m for m in means if _by_sample(m, sizes, everything)]
        if not means or node.count < 2 * len(node.steps) or not node.steps:
            continue
        places = tuple(dict.fromkeys(s for s in (node.site, means[0].site) if s is not None))
        text = (
            f"a mean over each batch is read off; batches have {sizes[0]} samples, the last "
            f"one {sizes[1]}"
        )
        yield Finding(
            "evaluation.metric-averaging",
            "suspected",
            0.4,
            "Means of unequal batches are averaged",
            places,
            (Evidence(text, "evaluation", node.steps[:3], float(sizes[1]), float(sizes[0])),),
            Fix(
                "Sum over samples and divide by their number: multiply each batch mean by "
                "the size of its batch."
            ),
            params={"loaders": _loaders(run)},
        )
        return


def _printed(run: Run) -> Finding | None:
    """What is printed after an evaluation is the plain mean of numbers that stand for different
    numbers of samples.
    """
    everything = nodes(run)
    by_id = {n.id: n for n in everything}
    for node in everything:
        means = [m for m in _read_off(node, by_id) if _is_mean(m.op, m.args)]
        if not means or any(_ignores(m) for m in means):
            continue
        told = [
            t
            for step in dict.fromkeys(s for s, _, _ in node.reads)
            if (t := _compared(run, node, step)) is not None
        ]
        wrong = [t for t in told if t[0]]
        told = [t for t in told if t[0] or _differ(t[1], t[2])]
        apart = max(
            (
                abs(plain - weighted) / max(abs(weighted), 1e-9)
                for _, plain, weighted, _, _ in wrong
            ),
            default=0.0,
        )
        if len(wrong) < 2 or len(wrong) < 0.8 * len(told) or apart < MATTERS:
            continue
        _, plain, weighted, low, high = wrong[-1]
        places = tuple(dict.fromkeys(s for s in (node.site, means[0].site) if s is not None))
        text = (
            f"printed is {plain:.6g}, the plain mean over the batches; over all samples it is "
            f"{weighted:.6g}"
        )
        return Finding(
            "evaluation.metric-averaging",
            "proven",
            0.95,
            "Means of unequal batches are averaged",
            places,
            (
                Evidence(text, "evaluation", node.steps[:3], plain, weighted),
                Evidence(
                    f"the batches hold between {low} and {high} values",
                    "evaluation",
                    (),
                    float(low),
                    float(high),
                ),
            ),
            Fix(
                "Sum over samples and divide by their number: multiply each batch mean by "
                "the size of its batch."
            ),
        )
    return None


def _by_library(run: Run) -> Finding | None:
    """Outputs of every batch go to a library of metrics: whether its scores are averaged then, only
    the experiment can tell.
    """
    loaders = _loaders(run)
    if "sklearn.metrics" not in (run.facts.get("metric_libraries") or ()) or not loaders:
        return None
    several = [p for p in passes(run) if p["calls"] >= 2]
    for node in nodes(run):
        if (
            node.op not in ("numpy", "tolist", "__array__")
            or "output" not in node.roles
            or not several
            or not node.steps
        ):
            continue
        if node.count >= 2 * len(node.steps):
            text = (
                f"outputs leave torch batch by batch, {node.count} times in {len(node.steps)} "
                "evaluations, beside sklearn"
            )
            return Finding(
                "evaluation.metric-averaging",
                "suspected",
                0.3,
                "Scores of single batches are averaged",
                tuple(s for s in (node.site,) if s is not None),
                (Evidence(text, "evaluation", node.steps[:3]),),
                Fix("Collect predictions and targets of all batches, and compute the score once."),
                params={"loaders": loaders},
            )
    return None


def _weighted(run: Run) -> bool:
    """The mean over all values of something is what was printed: the script does weigh its
    batches.
    """
    for node in nodes(run):
        for step in dict.fromkeys(s for s, _, _ in node.reads):
            told = _compared(run, node, step)
            if told is None or told[0] or not _differ(told[1], told[2]):
                continue
            if any(abs(x - told[2]) <= 0.51 * u for x, u in printed_numbers(run, step)):
                return True
    return False


def _differ(plain: float, weighted: float) -> bool:
    """Where both means are the same, as of a score that has reached its top, what is printed tells
    nothing.
    """
    return abs(plain - weighted) > 1e-4 * max(abs(weighted), 1e-9)


def _read_off(node: Node, by_id: Mapping[int, Node]) -> list[Node]:
    """What a number was read off from, a root or an exponential passed over."""
    direct = [by_id[s] for s in node.sources if s in by_id]
    return [
        m
        for d in direct
        for m in ([by_id[s] for s in d.sources if s in by_id] if d.op in BENT else [d])
    ]


def _compared(run: Run, node: Node, step: int) -> tuple[bool, float, float, int, int] | None:
    """(the plain mean was printed and the weighted one was not, both, the smallest and the largest
    batch) of one evaluation.
    """
    reads = [(value, size) for at, value, size in node.reads if at == step]
    sizes = [size for _, size in reads]
    if len(reads) < 2 or min(sizes) < 1:
        return None
    bent = _bent(run, node, step, reads)
    if bent is not None or min(sizes) > UNEQUAL * max(sizes):
        return bent
    plain = sum(v for v, _ in reads) / len(reads)
    weighted = sum(v * n for v, n in reads) / sum(sizes)
    for change in (
        lambda v: v,
        lambda v: 100.0 * v,
        lambda v: math.exp(min(v, 50.0)),
        lambda v: 1.0 - v,
    ):
        wrong, right = change(plain), change(weighted)
        for number, unit in printed_numbers(run, step):
            if abs(wrong - right) > 1.5 * unit and abs(number - wrong) <= 0.51 * unit:
                clash = any(
                    abs(other - right) <= 0.51 * u for other, u in printed_numbers(run, step)
                )
                return (not clash, wrong, right, min(sizes), max(sizes))
    return (False, plain, weighted, min(sizes), max(sizes))


def _bent(
    run: Run, node: Node, step: int, reads: list[tuple[float, int]]
) -> tuple[bool, float, float, int, int] | None:
    """A root or an exponential of each batch's mean is averaged: that is not the root of the mean,
    however large the batches.
    """
    values, sizes = np.array([v for v, _ in reads]), np.array([n for _, n in reads], float)
    numbers = printed_numbers(run, step)
    by_torch = {n.op for n in nodes(run) if n.id in node.sources}
    for name, bend, straighten in (
        ("sqrt", np.sqrt, np.square),
        ("exp", lambda v: np.exp(np.minimum(v, 50.0)), np.log),
    ):
        done = name in by_torch
        if values.min() <= (0 if done or name == "sqrt" else -50.0):
            continue
        plain = float(np.mean(values if done else bend(values)))
        whole = float(bend(np.average(straighten(values) if done else values, weights=sizes)))
        for number, unit in numbers:
            if abs(plain - whole) > 1.5 * unit and abs(number - plain) <= 0.51 * unit:
                clash = any(abs(other - whole) <= 0.51 * u for other, u in numbers)
                return (not clash, plain, whole, int(sizes.min()), int(sizes.max()))
    return None


def _ignores(node: Node) -> bool:
    """A loss that leaves targets out is a mean over fewer values than it was given."""
    named = [str(a).partition("=")[2] for a in node.args if str(a).startswith("ignore_index=")]
    ignored = int(named[0]) if named and named[0].lstrip("-").isdigit() else -100
    whole = [g for g in node.given[1:2] if str(g.get("dtype", "")).startswith("int") and "min" in g]
    return any(g["min"] <= ignored <= g["max"] for g in whole)


def _is_mean(op: str, args: tuple[object, ...]) -> bool:
    if op in ("mean", "nanmean", "div", "__truediv__", "true_divide"):
        return True
    return (op.endswith("_loss") or "cross_entropy" in op) and not any(
        a in ("reduction=sum", "reduction=none") for a in args
    )


def _by_sample(node: Node, sizes: tuple[int, int], everything: Sequence[Node]) -> bool:
    """The mean is over samples. One over tokens of padded sequences is a matter of taste."""
    for given in (g for n in (node, *made_by(everything, node)) for g in n.given):
        if any(
            shape and shape[0] in sizes and len(shape) <= 2 for shape in given.get("shapes", ())
        ):
            return True
    return False


def _loaders(run: Run) -> list[int]:
    """Loaders that are evaluated and never trained on."""
    trained, evaluated = told_apart(run)
    sources = {b.source for b in evaluated} - {b.source for b in trained} - {"model"}
    return sorted(int(s.removeprefix("loader:")) for s in sources)


def _unequal(run: Run) -> tuple[int, int] | None:
    _, evaluated = told_apart(run)
    passes: dict[tuple[str, int, int], list[int]] = {}
    for batch in evaluated:
        if batch.source != "model" and batch.fingerprints:
            passes.setdefault((batch.source, batch.epoch, batch.step), []).append(
                len(batch.fingerprints)
            )
    for sizes in passes.values():
        if len(sizes) >= 2 and sizes[-1] <= UNEQUAL * sizes[0]:
            return sizes[0], sizes[-1]
    return None
