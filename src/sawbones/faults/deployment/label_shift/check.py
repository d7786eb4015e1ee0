"""Class rates or label values in production that differ from those in training

## What it sees
Two evaluations of one model in one state, on rows that were not trained on, with what was asked
for. Fires when one is far worse than the other (as for a covariate shift), the share of a class
differs by 10 points or more, and among rows of one class the inputs are as they were; or, with such
rates, when answers of one class are right less often by at least 20 points, whatever the accuracy.
`sawbones audit shift` looks at data sets: it fires when at least `label_shift` (5 %) of the rows
would have to change their class and the p-value is below `significance` (0.001).

## Why it matters
Thresholds, calibrated probabilities and expected counts are tied to the class rates of the training
set.

## Looks like
Precision falls while recall holds, or the other way round; the share of positives is off from the
first day.

## Example
    model.fit(balanced_rows, balanced_labels)
    alarms = model.predict_proba(production)[:, 1] > 0.5

## Use instead
    odds = (true_rate / (1 - true_rate)) / (train_rate / (1 - train_rate))
    scores = model.predict_proba(production)[:, 1]
    alarms = odds * scores / (odds * scores + 1 - scores) > 0.5

## Confirm it
Within each class the inputs are distributed as before; only the mix is another. Both are measured
here. With the class rates of the later rows in the decision the score comes back.

## False alarms
A label that moved only because the inputs did is evidence of the covariate shift. A test set that
was balanced on purpose differs from production on purpose; it is named only where the model is far
worse on one of the two.

## References
Lipton et al., "Detecting and correcting for label shift with black box predictors" (2018). Saerens
et al. (2002).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import context, finding
from sawbones.evidence.populations import far_worse, where, worse_by
from sawbones.schema import Finding, Fix, Run

NEEDS = ("populations",)
USES = ("source_lines",)
EXPLAINS = ()
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    for pair in far_worse(run, "deployment.label-shift"):
        moved = pair.labels
        if moved is None:
            continue
        what = "targets: mean" if moved.label is None else f"class {moved.label:g}: share"
        text = f"{what} {moved.before:.3g} before, {moved.after:.3g} here"
        yield finding(
            "The model is far worse on rows with other class rates",
            where(run, pair.sites),
            (
                worse_by(pair),
                context(text, signal="populations", value=moved.after, expected=moved.before),
                context("within one class the inputs are distributed as before"),
            ),
            Fix(
                "Correct the scores for the class rates that are met in use, or train with those "
                "rates."
            ),
        )
