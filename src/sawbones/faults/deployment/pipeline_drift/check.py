"""A feature whose definition, unit or encoding changed without a word

## What it sees
Two evaluations of one model in one state, on rows that were not trained on, with what was asked
for. Fires when one is far worse than the other (as for a covariate shift), and the column that moved
furthest has a spread 3 times as large or as small, or lies 6 spreads away, as do at most a third of
all columns. A suspicion, unless that is 50 times or 50 spreads, and most rows have it. `sawbones
audit shift` looks at data sets: types, missing values (`null_rate`, 5 %), categories that only one
side has (`new_category`, 1 %), a unit in which the old distribution comes back, and with `--time` a
jump of this one feature at one date.

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
expected on the other side is not counted as new. In a run, a population on which the model is as
good as before is not looked at. Later months, other machines and inputs that were made hard on
purpose are far, but rarely so far that nothing of them was ever seen.

## References
Breck et al., "Data validation for machine learning" (2019). Sculley et al., "Hidden technical debt
in machine learning systems" (2015).
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import finding
from sawbones.evidence.populations import far_outside, far_worse, moved_by, where, worse_by
from sawbones.schema import Finding, Fix, Run

NEEDS = ("populations",)
USES = ("source_lines",)
EXPLAINS = ("evaluation.preprocessing-mismatch",)
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    for pair in far_worse(run, "deployment.pipeline-drift"):
        first, outside = pair.columns[0], list(far_outside(pair))
        yield finding(
            f"Input column {first.column} means something else on the rows that are answered "
            "far worse",
            where(run, pair.sites),
            (worse_by(pair), *outside, *moved_by(pair.columns)),
            Fix(
                f"Bring column {first.column} to the unit and definition of training (its "
                f"spread is {first.spread:.3g} times that of the other rows)."
            ),
            at_most="proven" if outside else "suspected",
        )
