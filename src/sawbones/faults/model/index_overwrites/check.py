"""Values added at repeated indices, of which all but one are lost

## What it sees
Under `diagnose`, every line that reads the places an index tensor names, adds to them and writes
them back (`a[i] += b`). Fires when places are named several times in one write, and the values that
are added there differ: the last one is kept and the others are gone. Where one and the same number
is added everywhere it is suspected, since each place may be meant to get it once.

## Why it matters
A sum over neighbours, segments or classes keeps one summand of each. Shapes, gradients and the loss
look right.

## Looks like
A graph network that is hardly better than one without edges; histograms and confusion matrices with
far fewer counts than samples.

## Example
    total = torch.zeros_like(h)
    total[dst] += h[src]

## Use instead
    total = torch.zeros_like(h).index_add(0, dst, h[src])

## Confirm it
The indices and the values are the proof: how many were added, and how many are kept.

## False alarms
Indices that are all different, masks, slices and single numbers name every place once. Rows that are
gathered by the same index are equal wherever it repeats (a hand-written sparse update): nothing is
lost. scatter_add, index_add, index_put with accumulate=True and bincount add up.

## References
The documentation of Tensor.index_put_: with repeated indices and without accumulate, the behaviour
is undefined; NumPy's add.at exists for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run
from sawbones.trace.locate import locate

NEEDS = ("index_writes",)
EXPLAINS = ("evaluation.metric-averaging",)
EXPERIMENT = None
PREVIEW = True


def check(run: Run) -> Iterator[Finding]:
    rows = [row for row in run.index_writes if row.values]
    if not rows:
        raise NothingToJudge("nothing is added to places that index tensors name")
    losing = sorted((r for r in rows if r.lost or r.counted), key=lambda r: (-r.lost, -r.counted))
    for row in losing[:1]:
        text = (
            f"{row.repeated} of {row.values} values are added at a place that another one of the "
            f"same write has too (in {row.writes} writes); "
            + (f"{row.lost} are lost" if row.lost else "of each such place one is kept")
        )
        yield finding(
            "Values are added at repeated indices, and all but one are lost",
            locate(row),
            (exact(text, row.lost or row.counted, signal="index_writes"),),
            Fix(
                "Add up with index_add_(dim, index, values), scatter_add_ or index_put_(..., "
                "accumulate=True); count with torch.bincount."
            ),
            at_most="proven" if row.lost else "suspected",
        )
