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

from sawbones.evidence import NothingToJudge, compared, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import data as limits
from sawbones.schema import Finding, Fix, Run
from sawbones.schema.samples import ClassAnswers, Samples
from sawbones.stats.loss_calls import carrying
from sawbones.trace.feeding import loader_sites
from sawbones.trace.locate import locate

NEEDS = ("losses", "samples")
USES = ("loaders",)
EXPLAINS = (
    "evaluation.collapsed-prediction",
    "evaluation.metric-threshold",
    "optimizer.lr-too-low",
)
EXPERIMENT = "classes_weighed"
MIN_STEPS = 30  # a model needs some time before it predicts a rare class
MIN_RARE = 8  # samples of rare classes: that none of fewer is found may be chance
MAX_CLASSES = 20  # with more, rare ones are the rule
MAX_CLASSES_OF_TEXTS = 12  # a small vocabulary is no set of classes


def check(run: Run) -> Iterator[Finding]:
    samples = run.samples or Samples()
    predictions = samples.predictions
    present = {
        label: row
        for label, row in predictions.classes.items()
        if row.wanted and label >= 0  # -100 is no class
    }
    most_classes = MAX_CLASSES_OF_TEXTS if samples.rows else MAX_CLASSES
    if not 2 <= len(present) <= most_classes or run.num_steps < MIN_STEPS:
        raise NothingToJudge(f"no predictions of a few classes over {MIN_STEPS} steps")
    most = max(row.wanted for row in present.values())
    rare = {
        label: row
        for label, row in present.items()
        if limits.CLASS_RATIO.suspected_by(most / row.wanted)
    }
    num = sum(row.wanted for row in rare.values())
    found, predicted = (
        sum(row.right for row in rare.values()),
        sum(row.given for row in rare.values()),
    )
    if (
        num < MIN_RARE
        or not limits.RARE_FOUND.kept_by(found / num)
        or limits.LABEL_EVENNESS.passed_by(_evenness(present))
        or _weighed(run, rare)
    ):
        return
    seen = carrying(run)
    built = next((s.built for s in seen if s.built is not None), None)
    called = next((s.call.site for s in seen if s.call.site is not None), None)
    shares = ", ".join(f"{label}: {row.wanted}" for label, row in sorted(present.items())[:8])
    yield finding(
        "Rare classes are never predicted, and the loss does not weigh them",
        locate(built or called, *loader_sites(run)[:1], called)[:4],
        (
            compared(
                f"labels of the last batches: {shares}; the commonest {most / num:.0f} times "
                "the rare ones",
                most / min(row.wanted for row in rare.values()),
                limits.CLASS_RATIO,
                expected=1,
                signal="samples",
            ),
            compared(
                f"of {num} samples of rare classes {found} are predicted right, and {predicted} "
                "predictions name one",
                found / num,
                limits.RARE_FOUND,
                below=True,
                expected=1 / 2,
                signal="samples",
            ),
        ),
        Fix(
            "Weigh classes by the inverse of their frequency (weight=, pos_weight=) or "
            "draw them evenly (WeightedRandomSampler)."
        ),
        # Places of a map are no samples: a sparse picture that is only to be copied has rare ones
        # too, so the second run decides.
        at_most="suspected" if predictions.maps else "likely",
        params={"rare": sorted(rare)},
    )


def _evenness(classes: Mapping[int, ClassAnswers]) -> float:
    """Entropy of the labels over that of as many equally common classes."""
    counts = [row.wanted for row in classes.values()]
    shares = [count / sum(counts) for count in counts]
    return -sum(share * math.log(share) for share in shares) / math.log(len(shares))


def _weighed(run: Run, rare: Mapping[int, ClassAnswers]) -> bool:
    """The measured weight of a target of a rare class is well above that of the others."""
    for seen in carrying(run):
        if seen.facts.has_weight:
            return True
        weights = seen.facts.weights.by_class if seen.facts.weights else {}
        means = {label: row[1] for label, row in weights.items() if row[0]}
        inside = [w for label, w in means.items() if label in rare]
        outside = [w for label, w in means.items() if label not in rare]
        if inside and outside:
            ratio = max(inside) / max(*outside, TINY)
            if limits.RARE_WEIGHT.passed_by(ratio):
                return True
    return False
