"""Class weights or label smoothing that push the wrong way

## What it sees
How much a target of each class really weighs in the loss (from its gradient) against how often the
class occurs, over all deep steps (positives and negatives of a binary loss likewise, so a
pos_weight is seen); the smoothing; the sum of soft targets. Fires when classes that are at least
twice as frequent weigh clearly more than the rare ones, when four or more weights are the inverse
frequencies (or their roots) of the classes but stand at other classes, when smoothing is 0.5 or
more, or when soft targets sum to something else than 1.

## Why it matters
Weights are there to make up for rarity; inverted they make the rare classes vanish. Smoothing above
one half means that the right class counts for less than the wrong ones together. Soft targets that
do not sum to 1 move the floor of the loss.

## Looks like
The rare class is never predicted although weights are set; or the loss has a floor that fits no
smoothing.

## Example
    counts = torch.bincount(labels)
    criterion = nn.CrossEntropyLoss(weight=counts / counts.sum())

## Use instead
    counts = torch.bincount(labels)
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / (len(counts) * counts))

## Confirm it
No experiment: weights and counts, measured on the batches that were trained on, make it likely.

## False alarms
Unweighted losses weigh all classes alike. Weights that favour rare classes, however strongly, are
what weights are for. Weights that do not follow frequency at all (costs, curriculum) are silent:
only a clear order by frequency counts, or the very values of the inverse frequencies in another
order. Focal losses weigh single targets by difficulty, not by class. Smoothing of 0.1 or 0.2 is
usual. Mixup and distillation targets sum to 1.

## References
The weight and pos_weight arguments of torch's losses, and the "balanced" heuristic n / (k * count)
of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import Seen, carrying
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate

NEEDS = ("loss_calls",)
USES = ("made_tensors",)
EXPLAINS = ("data.class-imbalance", "evaluation.collapsed-prediction")
EXPERIMENT = None
MIN_CLASSES = 4  # with fewer classes some order of the weights fits by chance
MIN_TARGETS = 8  # of a class in all deep steps, to know how often it occurs

_Said = tuple[str, Evidence, str]  # title, reading, fix


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in carrying(run) if s.is_finite]
    if not calls:
        raise NothingToJudge("no loss with a finite value carried a deep step")
    seen = calls[0]
    for title, reading, fix in (*_by_class(calls), *_smoothing(seen), *_row_sums(calls)):
        where = locate(
            *_made_at(run, seen),
            seen.built,
            *_filled_at(seen),
            seen.facts.target_soft_at,
            seen.call,
        )
        yield finding(title, where, (reading,), Fix(fix), at_most="likely")
        return


def _made_at(run: Run, seen: Seen) -> list[Site]:
    """The one line at which numbers became the tensor of class weights that the loss was given;
    moving them makes no numbers.
    """
    classes = seen.facts.num_classes
    rows = [r for r in run.made_tensors if r.shape == (classes,) and r.dtype.startswith("float")]
    for names in (("tensor", "as_tensor"), ("float", "to")):
        sites = locate(*(row for row in rows if row.op in names))
        if sites:
            return list(sites) if seen.facts.has_weight and len(sites) == 1 else []
    return []


def _filled_at(seen: Seen) -> list[Site]:
    """Where soft targets spelled out by hand get their values: the line that makes the tensor, then
    those that write into it.
    """
    used = seen.facts.target_soft_at
    for op in seen.deep.ops:
        if used is None or op.name != "mul" or op.site != used or not op.outputs:
            continue
        soft = next(
            (v for v in op.inputs if not v.requires_grad and v.shape == op.outputs[0].shape), None
        )
        if soft is not None:
            written = StepGraph(seen.deep, with_no_grad=True).writers(soft, op.index)
            return [o.site for o in written if o.site is not None]
    return []


def _by_class(calls: list[Seen]) -> Iterator[_Said]:
    counts: dict[int, float] = {}
    weights: dict[int, list[float]] = {}
    for seen in calls:
        measured = seen.facts.weights
        if (
            measured is None
            or not measured.by_class
            or not limits.WEIGHTS_FIT.reached_by(measured.fit)
        ):
            return
        # In units of the mean weight of this step: batches differ in size.
        unit = measured.sum / max(measured.used, 1)
        for key, (number, own, counted) in measured.by_class.items():
            if unit and number and limits.CLASS_COUNTED.reached_by(counted / number):
                counts[key] = counts.get(key, 0) + number
                weights.setdefault(key, []).append(own / unit)
    known = [c for c in counts if counts[c] >= MIN_TARGETS]
    if len(known) < 2:
        return
    often = np.array([counts[c] for c in known])
    # Averages over the batch shift the scale of a step a little; the order of the classes is what
    # matters.
    weight = np.array([float(np.median(weights[c])) for c in known])
    if (
        weight.min() <= 0
        or not limits.CLASS_IMBALANCE.reached_by(often.max() / often.min())
        or not limits.WEIGHT_SPREAD.reached_by(weight.max() / weight.min())
    ):
        return
    follows = float(np.corrcoef(np.log(often), np.log(weight))[0, 1])
    if not limits.COUNTS_FOLLOWED.reached_by(follows):
        yield from _in_wrong_order(calls, known, often, weight)
        return
    rare, common = known[int(often.argmin())], known[int(often.argmax())]
    ratio = float(weight[often.argmax()] / weight[often.argmin()])
    yield (
        "Class weights are inverted: frequent classes weigh more than rare ones",
        compared(
            f"class {common} ({int(often.max())} targets seen) weighs {ratio:.3g} times as much "
            f"as class {rare} ({int(often.min())} seen); weights follow counts with a correlation "
            f"of {follows:.2f}",
            follows,
            limits.COUNTS_FOLLOWED,
            expected=-1,
            signal="loss_calls",
            steps=[s.deep.step for s in calls],
        ),
        "Weigh each class by the inverse of its frequency: total / (number of classes * count).",
    )


def _in_wrong_order(
    calls: list[Seen], known: list[int], often: np.ndarray, weight: np.ndarray
) -> Iterator[_Said]:
    """The weights are those of inverse frequency, or of its root, each handed to another class."""
    if (
        len(known) < MIN_CLASSES
        or not limits.SHUFFLED_IMBALANCE.reached_by(often.max() / often.min())
        or not limits.SHUFFLED_WEIGHT_SPREAD.reached_by(weight.max() / weight.min())
    ):
        return
    # A count is only a sample of the frequency: its logarithm is off by about one over its root.
    noise = float(np.sqrt(np.mean(1 / often)))
    values = np.log(weight)
    for counts in (np.log(often), np.log(often) / 2):
        in_order = float(np.std(np.sort(values) + np.sort(counts)[::-1]))
        off = float(np.std(values + counts))
        if (
            limits.SORTED_WEIGHTS_OFF.undercut_by(in_order - noise)
            and limits.SHUFFLED_WEIGHTS_OFF.passed_by(off)
            and limits.SHUFFLED_OVER_SORTED.passed_by(off / max(in_order, TINY))
        ):
            rare, common = int(often.argmin()), int(often.argmax())
            yield (
                "Class weights stand at the wrong classes: inverse frequencies in another "
                "order than the class ids",
                compared(
                    f"sorted, the {len(known)} weights are the classes' inverse frequencies to "
                    f"within {100 * in_order:.0f} %, but class {known[common]} "
                    f"({int(often.max())} targets seen) weighs {weight[common]:.3g} and class "
                    f"{known[rare]} ({int(often.min())} seen) {weight[rare]:.3g}",
                    off,
                    limits.SHUFFLED_WEIGHTS_OFF,
                    expected=in_order,
                    signal="loss_calls",
                    steps=[s.deep.step for s in calls],
                ),
                "Put the weights in the order of the class ids (bincount gives it; a "
                "Counter keeps the order of first appearance).",
            )
            return


def _smoothing(seen: Seen) -> Iterator[_Said]:
    smoothing = seen.number("smoothing")
    if limits.LABEL_SMOOTHING.reached_by(smoothing):
        yield (
            f"Label smoothing of {smoothing:.3g} gives the right class less than half of the "
            "target",
            compared(
                f"label_smoothing is {smoothing:.3g}; usual is 0.1",
                smoothing,
                limits.LABEL_SMOOTHING,
                signal="loss_calls",
                steps=(seen.deep.step,),
            ),
            "Use the share that is taken away, not the one that is kept: "
            f"label_smoothing={1 - smoothing:.3g}.",
        )


def _row_sums(calls: list[Seen]) -> Iterator[_Said]:
    rows = [s.facts.target_row_sum for s in calls if s.facts.target_row_sum]
    first = calls[0].facts
    # Several classes at once are another fault.
    whole = first.target_is_whole and not first.target_is_index
    if len(rows) < len(calls) or whole or calls[0].call.fn not in ("cross_entropy", "kl_div"):
        return
    low, high = min(r[0] for r in rows), max(r[1] for r in rows)
    if limits.EMPTY_ROW.undercut_by(high):
        return
    low = high if limits.EMPTY_ROW.undercut_by(low) else low  # rows of zeros are padding
    # Rows of different sums carry a weight each; a little off is a share for the right class too
    # many or too few.
    off = not limits.ROW_SUM_OFF.undercut_by(abs(high - 1))
    if off and limits.ROW_SUM_SPREAD.kept_by((high - low) / high):
        yield (
            f"Soft targets sum to {high:.3g}, not to 1",
            exact(
                f"the targets of one row sum to {low:.4g} to {high:.4g}",
                high,
                expected=1,
                within=limits.ROW_SUM_OFF.value,
                signal="loss_calls",
                steps=(calls[0].deep.step,),
            ),
            "Spread the smoothing so that a row sums to 1: confidence + smoothing = 1, shared "
            "among the other classes.",
        )
