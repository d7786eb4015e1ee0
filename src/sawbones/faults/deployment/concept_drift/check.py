"""A relation between input and target that is no longer the one that was learned

## What it sees
Two evaluations of one model in one state, on rows that were not trained on, with what was asked
for. Fires when one is far worse than the other (as for a covariate shift) although neither a column
of the inputs nor the targets moved, and rows are no nearer to their own population than to the
other. `sawbones audit shift` looks at data sets: with predictions at
the error on both sides, without at the label's rate at equal values of each feature, from a change
of `concept` (0.1, sampling noise taken off) where no input moved.

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
whose label is final. Columns that lie together in another way, each by itself as before, show in that
the nearest neighbour of a row is of its own population: nothing is said then.

## References
Gama et al., "A survey on concept drift adaptation" (2014). Lu et al., "Learning under concept
drift: a review" (2018).
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
    for pair in far_worse(run, "deployment.concept-drift"):
        text = f"none of {pair.width} input columns moved as far as it takes"
        yield finding(
            "The model is far worse on rows whose inputs look as before",
            where(run, pair.sites),
            (worse_by(pair), context(text, signal="populations")),
            Fix(
                "Train again on rows from after the change, and find out what changed in the "
                "meaning of the target."
            ),
        )
