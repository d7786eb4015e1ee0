"""A rare class that the loss does not make up for, so that it is never predicted

## What it sees
Class labels of all training batches and what the model predicted in the last 40 of them. Fires when
the commonest class is at least 15 times as frequent as a rare one, the entropy of the labels is
under 0.6 of log C, the loss weighs all classes alike, and the rare classes are predicted in less
than 2 % of the cases where they are the truth.

## Why it matters
Guessing the commonest class is nearly optimal for the loss, so that is what is learned; the class
that matters is lost.

## Looks like
Accuracy of 97 % from the first epoch on, recall of zero.

## Example
    criterion = nn.CrossEntropyLoss()  # 2 % of the labels are 1

## Use instead
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / (2 * counts))

## Confirm it
The script runs again with every class weighed by the inverse of its frequency. Confirmed when the
rare classes are then found; refuted when they are not, because then nothing in the inputs gives
them away.

## False alarms
Weighted losses, pos_weight and weighted samplers predict their rare classes or see balanced
batches. Rare tokens of a language model are not looked at, nor a small class beside several large
ones: only one label per sample, or per place of a picture, counts. A rare class that is found
anyway needs no weight.

## References
Fraud, defects, rare diseases; SageMaker Debugger has a rule on label counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from sawbones.schema import Evidence, Finding, Fix, Run
from sawbones.stats.data_lines import loader_sites
from sawbones.stats.loss_calls import carrying, places

NEEDS = ("losses",)
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "evaluation.metric-threshold",
    "optimizer.lr-too-low",
)
EXPERIMENT = "classes_weighed"
RATIO = 15.0
# of the entropy of evenly spread labels: above that the common classes keep each other in check
SEVERE = 0.6


def check(run: Run) -> Iterator[Finding]:
    samples = run.facts.get("samples") or {}
    predictions = samples.get("predictions") or {}
    classes: Mapping[str, list[int]] = predictions.get("classes") or {}
    present = {
        label: row for label, row in classes.items() if row[0] > 0 and not label.startswith("-")
    }  # -100 is no class
    if (
        not 2 <= len(present) <= 20
        or run.num_steps < 30
        or ("rows" in samples and len(present) > 12)
    ):
        return
    most = max(row[0] for row in present.values())
    rare = {label: row for label, row in present.items() if most >= RATIO * row[0]}
    num = sum(row[0] for row in rare.values())
    found = sum(row[1] for row in rare.values())
    if (
        not rare
        or num < 8
        or found > 0.02 * num
        or _evenness(present) > SEVERE
        or _weighed(run, rare)
    ):
        return
    seen = carrying(run)
    built = next((s.built for s in seen if s.built is not None), None)
    called = next((s.call.site for s in seen if s.call.site is not None), None)
    shares = ", ".join(f"{label}: {row[0]}" for label, row in sorted(present.items())[:8])
    predicted = sum(row[2] for row in rare.values())
    yield Finding(
        "data.class-imbalance",
        # Places of a map are no samples: a sparse picture that is only to be copied has rare ones
        # too, so the second run decides.
        "likely"
        if most >= 20 * min(row[0] for row in rare.values()) and not predictions.get("maps")
        else "suspected",
        0.85,
        "Rare classes are never predicted, and the loss does not weigh them",
        places(built or called, *loader_sites(run)[:1], called)[:4],
        (
            Evidence(
                (
                    f"labels of the last batches: {shares}; the commonest "
                    f"{most / max(num, 1):.0f} times the rare ones"
                ),
                "samples",
            ),
            Evidence(
                (
                    f"of {num} samples of rare classes {found} are predicted right, and "
                    f"{predicted} predictions name one"
                ),
                "samples",
                value=found / num,
                expected=0.5,
            ),
        ),
        Fix(
            "Weigh classes by the inverse of their frequency (weight=, pos_weight=) or "
            "draw them evenly (WeightedRandomSampler)."
        ),
        params={"rare": sorted(rare)},
    )


def _evenness(classes: Mapping[str, list[int]]) -> float:
    """Entropy of the labels over that of as many equally common classes."""
    counts = [row[0] for row in classes.values()]
    shares = [count / sum(counts) for count in counts]
    return -sum(share * math.log(share) for share in shares) / math.log(len(shares))


def _weighed(run: Run, rare: Mapping[str, list[int]]) -> bool:
    """The measured weight of a target of a rare class is well above that of the others."""
    for seen in carrying(run):
        if seen.facts.get("has_weight"):
            return True
        weights = (seen.facts.get("weights") or {}).get("by_class") or {}
        means = {label: row[1] for label, row in weights.items() if row[0]}
        inside = [w for label, w in means.items() if label in rare]
        outside = [w for label, w in means.items() if label not in rare]
        if inside and outside and max(inside) > 2.0 * max(outside):
            return True
    return False
