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
The reading is the proof: weights and counts are measured on the batches that were trained on.

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

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import Seen, as_site, carrying, places

NEEDS = ("loss_calls",)
EXPLAINS = ("data.class-imbalance", "evaluation.collapsed-prediction")
EXPERIMENT = None
IMBALANCE = 2.0
SPREAD = 1.3  # weights closer than that are alike
MANY = 4  # with fewer classes some order of the weights fits by chance
UNEVEN = 4.0
FEW = 8  # targets of a class in all deep steps, to know how often it occurs


def check(run: Run) -> Iterator[Finding]:
    calls = [s for s in carrying(run) if s.is_finite]
    if not calls:
        return
    for text, evidence, fix, confidence in (
        *_by_class(calls),
        *_smoothing(calls),
        *_row_sums(calls),
    ):
        seen = calls[0]
        yield Finding(
            "loss.weighting",
            "likely",
            confidence,
            text,
            places(
                *_made_at(run, seen),
                seen.built,
                *_filled_at(seen),
                as_site(seen.facts.get("target_soft_at")),
                seen.call.site,
            ),
            (evidence,),
            Fix(fix),
        )
        return


def _made_at(run: Run, seen: Seen) -> list[Site]:
    """The one line at which numbers became the tensor of class weights that the loss was given;
    moving them makes no numbers.
    """
    classes = seen.facts.get("num_classes")
    rows = [
        row
        for row in run.facts.get("data_ops") or ()
        if list(row.get("shape") or ()) == [classes] and str(row.get("dtype")).startswith("float")
    ]
    for names in (("tensor", "as_tensor"), ("float", "to")):
        sites = places(*(as_site(row.get("site")) for row in rows if row.get("op") in names))
        if sites:
            return list(sites) if seen.facts.get("has_weight") and len(sites) == 1 else []
    return []


def _filled_at(seen: Seen) -> list[Site]:
    """Where soft targets spelled out by hand get their values: the line that makes the tensor, then
    those that write into it.
    """
    used = as_site(seen.facts.get("target_soft_at"))
    for op in seen.deep.ops:
        if used is None or op.name != "mul" or op.site != used or not op.outputs:
            continue
        soft = next(
            (v for v in op.inputs if not v.requires_grad and v.shape == op.outputs[0].shape), None
        )
        if soft is not None:
            makers = (
                o
                for o in seen.deep.ops
                if o.index < op.index and any(v.id == soft.id for v in o.outputs)
            )
            return [o.site for o in makers if o.site is not None]
    return []


_Said = tuple[str, Evidence, str, float]


def _by_class(calls: list[Seen]) -> Iterator[_Said]:
    counts: dict[int, float] = {}
    weights: dict[int, list[float]] = {}
    for seen in calls:
        measured = seen.facts.get("weights") or {}
        if measured.get("fit", 0.0) < 0.98 or not measured.get("by_class"):
            return
        unit = measured["sum"] / max(
            measured["used"], 1
        )  # the mean weight of this step: batches differ in size
        for key, (number, weight, counted) in measured["by_class"].items():
            if counted >= 0.5 * number and unit:
                counts[int(key)] = counts.get(int(key), 0.0) + number
                weights.setdefault(int(key), []).append(weight / unit)
    known = [c for c in counts if counts[c] >= FEW]
    if len(known) < 2:
        return
    often = np.array([counts[c] for c in known])
    # Averages over the batch shift the scale of a step a little; the order of the classes is what
    # matters.
    weight = np.array([float(np.median(weights[c])) for c in known])
    if (
        often.max() < IMBALANCE * often.min()
        or weight.min() <= 0
        or weight.max() < SPREAD * weight.min()
    ):
        return
    follows = float(np.corrcoef(np.log(often), np.log(weight))[0, 1])
    if follows < 0.8:
        yield from _in_wrong_order(calls, known, often, weight)
        return
    rare, common = known[int(often.argmin())], known[int(often.argmax())]
    ratio = float(weight[often.argmax()] / weight[often.argmin()])
    yield (
        "Class weights are inverted: frequent classes weigh more than rare ones",
        Evidence(
            f"class {common} ({int(often.max())} targets seen) weighs {ratio:.3g} times as much as class {rare} "
            f"({int(often.min())} seen); weights follow counts with a correlation of {follows:.2f}",
            "loss_calls",
            tuple(s.deep.step for s in calls),
            follows,
            -1.0,
        ),
        "Weigh each class by the inverse of its frequency: total / (number of classes * count).",
        0.9,
    )


def _in_wrong_order(
    calls: list[Seen], known: list[int], often: np.ndarray, weight: np.ndarray
) -> Iterator[_Said]:
    """The weights are those of inverse frequency, each handed to another class."""
    counts, values = np.log(often), np.log(weight)
    if (
        len(known) < MANY
        or often.max() < UNEVEN * often.min()
        or weight.max() < UNEVEN**0.5 * weight.min()
    ):
        return
    # A count is only a sample of the frequency: its logarithm is off by about one over its root.
    noise = float(np.sqrt(np.mean(1.0 / often)))
    for power in (1.0, 0.5):
        sorted_off = float(np.std(np.sort(values) + power * np.sort(counts)[::-1]))
        off = float(np.std(values + power * counts))
        if sorted_off < 0.1 + noise and off > 0.6 and off > 4 * sorted_off:
            rare, common = known[int(often.argmin())], known[int(often.argmax())]
            at = {c: float(np.exp(values[i])) for i, c in enumerate(known)}
            yield (
                (
                    "Class weights stand at the wrong classes: inverse frequencies in another "
                    "order than the class ids"
                ),
                Evidence(
                    f"sorted, the {len(known)} weights are the classes' inverse frequencies to within {100 * sorted_off:.0f} %, "
                    f"but class {common} ({int(often.max())} targets seen) weighs {at[common]:.3g} and class {rare} "
                    f"({int(often.min())} seen) {at[rare]:.3g}",
                    "loss_calls",
                    tuple(s.deep.step for s in calls),
                    off,
                    sorted_off,
                ),
                (
                    "Put the weights in the order of the class ids (bincount gives it; a "
                    "Counter keeps the order of first appearance)."
                ),
                0.88,
            )
            return


def _smoothing(calls: list[Seen]) -> Iterator[_Said]:
    smoothing = calls[0].number("smoothing")
    if smoothing >= 0.5:
        yield (
            (
                f"Label smoothing of {smoothing:.3g} gives the right class less than half of "
                "the target"
            ),
            Evidence(
                f"label_smoothing is {smoothing:.3g}; usual is 0.1",
                "loss_calls",
                (calls[0].deep.step,),
                smoothing,
                0.1,
            ),
            (
                "Use the share that is taken away, not the one that is kept: "
                f"label_smoothing={1 - smoothing:.3g}."
            ),
            0.85,
        )


def _row_sums(calls: list[Seen]) -> Iterator[_Said]:
    rows = [s.facts["target_row_sum"] for s in calls if s.facts.get("target_row_sum")]
    first = calls[0].facts
    whole = first.get("target_is_whole") and not first.get(
        "target_is_index"
    )  # several classes at once: another fault
    if len(rows) < len(calls) or whole or calls[0].call.fn not in ("cross_entropy", "kl_div"):
        return
    low, high = min(r[0] for r in rows), max(r[1] for r in rows)
    low = high if low < 1e-6 else low  # rows of zeros are padding
    # Rows of different sums carry a weight each; a little off is a share for the right class too
    # many or too few.
    if high < 1e-6 or abs(high - 1) < 0.03 or high - low > 0.05 * high:
        return
    yield (
        f"Soft targets sum to {high:.3g}, not to 1",
        Evidence(
            f"the targets of one row sum to {low:.4g} to {high:.4g}",
            "loss_calls",
            (calls[0].deep.step,),
            high,
            1.0,
        ),
        (
            "Spread the smoothing so that a row sums to 1: confidence + smoothing = 1, shared "
            "among the other classes."
        ),
        0.85,
    )
