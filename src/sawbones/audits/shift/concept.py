"""A relation between input and target that is no longer the one that was learned

## What it sees
With predictions: the error on both sides. Without: the label's rate (of a quantity: its mean, in
standard deviations) at equal values of each feature. Fires from a change of `concept` (0.1,
sampling noise taken off) where no input moved.

## Why it matters
The model is wrong about inputs that look exactly like those it learned from. Nothing in the inputs
gives it away.

## Looks like
Error grows from one week to the next while every input dashboard is flat.

## Example
    model.fit(prices_before_the_tax_change)
    serve(model)

## Use instead
    model.fit(prices[prices["date"] >= TAX_CHANGE])
    serve(model)

## Confirm it
Train on current data alone and compare on current rows held out: the new model is better, although
the inputs are the same.

## False alarms
When inputs moved too, the larger error may be theirs: then it is evidence of the covariate shift.
Late labels (a default shows after months) look like a change of the relation; compare only rows
whose label is final.

## References
Gama et al., "A survey on concept drift adaptation" (2014). Lu et al., "Learning under concept
drift: a review" (2018).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made
from sawbones.audits.shift.relation import drift
from sawbones.audits.shift.signs import pipeline_signs
from sawbones.schema import Evidence, Finding

FAULT = "deployment.concept-drift"


def look(case: Case) -> Iterator[Finding]:
    for split in case.splits.values():
        case.need_label(split)
    found = drift(case)
    label = case.options.label
    if found.covariate or pipeline_signs(case):
        return
    by_error = (
        found.error_moved
        and found.error is not None
        and (found.label is None or found.label_is_consequence)
    )
    if not by_error and found.concept is None:
        return
    evidence = []
    if found.error is not None and found.error_moved:
        evidence.append(
            Evidence(
                f"{found.error.what}: {found.error.before:.3f} before, {found.error.after:.3f} now",
                "error",
                value=found.error.after,
                expected=found.error.before,
            )
        )
    column = None
    if found.concept is not None:
        column, change = found.concept
        measure = "rate" if case.label_kind == "class" else "mean, in standard deviations,"
        evidence.append(
            Evidence(
                f"at equal {column} the {measure} of {label} changed by {change:.3f}",
                "histogram by label",
                value=change,
                expected=case.thresholds.concept,
            )
        )
    evidence.append(Evidence("no input moved", "histograms"))
    yield made(
        FAULT,
        "likely",
        0.85,
        f"{label} no longer follows from the inputs as it did",
        evidence,
        "Retrain on recent rows only, and find the date from which the old ones mislead.",
        column=column,
        threshold=case.thresholds.concept,
    )
