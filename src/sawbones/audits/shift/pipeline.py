"""A feature whose definition, unit or encoding changed without a word

## What it sees
For each feature: whether it is there and of the same type, its share of missing values (a change of
`null_rate`, 5 %), categories that only one side has (`new_category`, 1 % of the rows), a unit in
which the old distribution comes back (factors of time, length, mass, currency and temperature), and
with `--time` a jump of this one feature at one date.

## Why it matters
The model reads a number that means something else. It is the most common shift, and the only one
that a line of code repairs.

## Looks like
Scores drop from one deployment to the next; one feature's histogram has no overlap with the old
one.

## Example
    row["duration"] = finished - started

## Use instead
    row["duration"] = (finished - started).total_seconds()

## Confirm it
Undo the change on the current data (convert the unit, map the category) and compare again: the move
is gone. For units the audit does so.

## False alarms
A new product or country is a new category by right: raise `new_category`. A category too rare to be
expected on the other side is not counted as new.

## References
Breck et al., "Data validation for machine learning" (2019). Sculley et al., "Hidden technical debt
in machine learning systems" (2015).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.audits.case import Case, made
from sawbones.audits.options import CannotLook
from sawbones.audits.shift.moves import LEAST_ROWS, described, sides
from sawbones.audits.shift.signs import pipeline_signs
from sawbones.schema import Evidence, Finding

FAULT = "deployment.pipeline-drift"
MOST = 10


def look(case: Case) -> Iterator[Finding]:
    reference, current = sides(case)
    if min(reference.rows, current.rows) < LEAST_ROWS:
        raise CannotLook(
            f"{reference.rows} and {current.rows} rows; {LEAST_ROWS} on each side are needed"
        )
    signs = pipeline_signs(case)
    for sign in signs[:MOST]:
        evidence = [Evidence(sign.what, "column", value=sign.value, expected=sign.expected)]
        if sign.move is not None:
            evidence.append(
                Evidence(
                    described(case, sign.move),
                    "histograms",
                    value=sign.move.effect,
                    expected=case.thresholds.ks,
                )
            )
        yield made(FAULT, "likely", 0.9, sign.what, evidence, sign.fix, column=sign.column)
    if len(signs) > MOST:
        case.notes.append(
            f"{len(signs) - MOST} further columns changed: "
            f"{', '.join(s.column for s in signs[MOST:])}"
        )
