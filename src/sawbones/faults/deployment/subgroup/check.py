"""A segment on which the model is far worse than on the whole

## What it sees
Evaluations of rows that were not trained on, with what was asked for. Fires when the script
evaluates a part of the rows of another evaluation, or one kind of row that training has some of,
and the model is far worse on it than on the rest (accuracy lower by at least 5 points at the lower
end of an interval that is corrected for all pairs); or when among the values of a column with few
of them (of the inputs, or held by the script beside the rows) one is worse by at least 15 points,
corrected for all values looked at. `sawbones audit shift` searches the columns named by
`--segment`, and pairs of them, in data sets: a segment of at least `segment_rows` (1 %) with an
error of `segment` (0.1) above the mean.

## Why it matters
The mean hides it: one per cent of the users can be served by a coin toss while the score moves in
the third digit.

## Looks like
Complaints from one country, device or language; an overall score that has not moved.

## Example
    print(accuracy_score(labels, predictions))

## Use instead
    wrong = labels != predictions
    print(wrong.groupby([rows["region"], rows["device"]]).agg(["mean", "size"]).sort_values("mean"))

## Confirm it
Score the segment on further rows: the interval of the finding says where the error should lie.

## False alarms
Among a thousand segments one is bad by chance: the interval is corrected for their number. A
segment that is hard by nature (rare classes) is a finding all the same; raise `segment` where that
is accepted.

## References
Chung et al., "Slice Finder: automated data slicing for model validation" (2019). Eyuboglu et al.,
"Domino" (2022).
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
    for pair in far_worse(run, "deployment.subgroup"):
        kinds = ", ".join(f"column {k.column} is {k.value}" for k in pair.kinds)
        which = f"rows where {kinds}" if kinds else "a part of the rows"
        yield finding(
            f"The model is far worse on {which}",
            where(run, pair.sites),
            (
                worse_by(pair),
                context(f"{which}: {pair.rows[1]} evaluated rows", signal="populations"),
            ),
            Fix("Collect or weigh more rows of this kind, and report its score beside the mean."),
        )
