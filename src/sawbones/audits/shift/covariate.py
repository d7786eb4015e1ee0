"""Inputs in production that are distributed differently from those in training

## What it sees
One histogram of every feature on both sides. A number counts as moved from a Kolmogorov-Smirnov
distance of `ks` (0.1) or a population stability index of `psi` (0.2, sampling noise taken off); a
category also from a Jensen-Shannon distance of `js` (0.2). The p-value, corrected for the number of
columns, must be below `significance` (0.001) as well, but never decides alone: at a million rows
everything is significant.

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
Train a classifier to tell reference rows from current ones: an AUC well above 0.5 confirms it, and
its best feature is the one that moved.

## False alarms
Inputs that moved only because the classes did are a label shift and are reported as that. A unit,
an encoding or missing values that changed are pipeline drift. Seasonal data moves every season:
compare with the same season.

## References
Quiñonero-Candela et al., "Dataset Shift in Machine Learning" (2009). Rabanser et al., "Failing
Loudly" (2019).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made
from sawbones.audits.options import CannotLook
from sawbones.audits.shift.moves import LEAST_ROWS, described, moves, sides
from sawbones.audits.shift.relation import drift
from sawbones.schema import Evidence, Finding

FAULT = "deployment.covariate-shift"
SHOWN = 8


def look(case: Case) -> Iterator[Finding]:
    reference, current = sides(case)
    if min(reference.rows, current.rows) < LEAST_ROWS:
        raise CannotLook(
            f"{reference.rows} and {current.rows} rows; {LEAST_ROWS} on each side are "
            "needed to compare distributions"
        )
    if not moves(case):
        raise CannotLook("no column with numbers or few categories is on both sides")
    found = drift(case)
    moved = found.covariate
    if not moved:
        return
    evidence = [
        Evidence(described(case, m), "histograms", value=m.effect, expected=case.thresholds.ks)
        for m in moved[:SHOWN]
    ]
    if found.label is not None and found.label_is_consequence:
        evidence.append(
            Evidence(
                f"{found.label.column} moved with them; at equal inputs its rate is what it was",
                "label",
                value=found.label.effect,
                expected=case.thresholds.label_shift,
            )
        )
    if found.error is not None and found.error_moved:
        evidence.append(
            Evidence(
                f"{found.error.what}: {found.error.before:.3f} before, {found.error.after:.3f} now",
                "error",
                value=found.error.after,
                expected=found.error.before,
            )
        )
    names = ", ".join(m.column for m in moved[:4]) + (
        f" and {len(moved) - 4} more" if len(moved) > 4 else ""
    )
    yield made(
        FAULT,
        "likely",
        0.9,
        f"{len(moved)} of {len(moves(case))} inputs moved: {names}",
        evidence,
        (
            "Retrain on data from where the model is used, or weigh training rows by how "
            "common they are there."
        ),
        columns=[m.column for m in moved],
        moves=[{"column": m.column, "ks": m.ks, "psi": m.psi, "js": m.js, "p": m.p} for m in moved],
    )
