"""Inputs in production that are distributed differently from those in training

## What it sees
Two evaluations of one model in one state, on rows that were not trained on, with what was asked
for. Fires when one is far worse than the other (accuracy lower by at least 5 points, or a mean
distance 1.5 times as large, at the lower end of an interval that is corrected for all pairs) and
input columns moved by a Kolmogorov-Smirnov distance of 0.15 or more. `sawbones audit shift` looks
at data sets: `ks` (0.1), `psi` (0.2) and for categories `js` (0.2), each with a p-value below
`significance` (0.001), corrected for the number of columns.

## Why it matters
The model answers for inputs that it has seen few of or none. How wrong it gets is not in any score
from training.

## Looks like
Scores fall slowly after deployment; averages of features in production do not match those of the
training set.

## Example
    model.fit(orders_of_2023)
    serve(model, country="BR")

## Use instead
    model.fit(orders[orders["country"].isin(SERVED) & orders["date"].between(start, today)])
    serve(model, country="BR")

## Confirm it
Train a classifier to tell the two populations apart: an AUC well above 0.5 confirms it, and its
best feature is the one that moved. Trained on rows of both, the model is good on both.

## False alarms
Inputs that moved only because the classes did are a label shift and are reported as that. A unit,
an encoding or missing values that changed are pipeline drift. Seasonal data moves every season:
compare with the same season. A population on which the model is as good as on the other is no
finding here, however far it moved.

## References
Quiñonero-Candela et al., "Dataset Shift in Machine Learning" (2009). Rabanser et al., "Failing
Loudly" (2019).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import context, finding
from sawbones.evidence.populations import far_worse, moved_by, where, worse_by
from sawbones.schema import Finding, Fix, Run

NEEDS = ("populations",)
USES = ("source_lines",)
EXPLAINS = ("evaluation.preprocessing-mismatch",)
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    for pair in far_worse(run, "deployment.covariate-shift"):
        yield finding(
            f"The model is far worse on rows whose inputs have moved "
            f"({pair.num_columns} of {pair.width} columns)",
            where(run, pair.sites),
            (
                worse_by(pair),
                *moved_by(pair.columns),
                context("targets moved beyond chance" if pair.labels else "targets did not move"),
            ),
            Fix(
                "Train on rows like those it will meet, and weigh or collect more of them where "
                "there are few."
            ),
        )
