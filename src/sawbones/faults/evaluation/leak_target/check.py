"""An input that is made from the label

## What it sees
The script is run again from the same seed, with the labels of rows that are only evaluated
exchanged among each other at the line where rows and labels enter it. Every input of the model, in
training and in the first evaluation, must be the same bit for bit. Fires when some columns of the
inputs changed and others did not, so that the split is known to have stayed where it was.
`sawbones audit leaks` measures each feature of a data set alone against the label, in the test
part: AUC of at least 0.95 for a class, R2 of at least 0.95 for a quantity, or |correlation| of at
least 0.9.

## Why it matters
The model is told the answer in the test, and nobody will tell it in use. The score says nothing.

## Looks like
A score that is far better than expected as soon as one feature is added.

## Example
    table["city_rate"] = table.groupby("city")["bought"].transform("mean")
    train, test = table[:8000], table[8000:]

## Use instead
    train, test = table[:8000].copy(), table[8000:].copy()
    rate = train.groupby("city")["bought"].mean()
    test["city_rate"] = test["city"].map(rate).fillna(train["bought"].mean())

## Confirm it
The reading itself is exact. For a feature that an audit asks about: train without it, and see
whether the score falls to what the task usually gives.

## False alarms
An encoding made from the labels of the training part, in folds or not, does not change with the
labels of others, and a table that already holds what was written after the event cannot be told
from one that is easy to learn: `sawbones audit leaks` asks about such columns. Where rows and
labels do not enter together the script may make the rows from the labels, as many examples do, and
nothing is tried; where the split follows the labels, all columns change, and nothing follows.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L2. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes"
(2001), which encodes by the target.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.schema import Finding, Fix, Run
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("source_change",)
EXPLAINS = ("evaluation.leak-preprocessing",)
EXPERIMENT = None
SHOWN = 5  # columns that are named


def check(run: Run) -> Iterator[Finding]:
    trial = run.facts["source_change"].get("labels") or {}
    if trial.get("outcome") not in ("moved", "kept"):
        raise NothingToJudge(trial.get("why") or "labels were not exchanged")
    if trial["outcome"] == "kept":
        return
    columns = trial["columns"]
    shown = ", ".join(map(str, columns[:SHOWN]))
    what = f"; first moved: {trial['name']}" if trial.get("name") else ""
    yield finding(
        "An input of the model is made from the labels of evaluated rows",
        places(as_site(trial.get("site")), as_site(trial.get("caller")), as_site(trial["entered"])),
        (
            exact(
                f"labels of {trial['changed']} evaluated rows were exchanged: {len(columns)} of "
                f"{trial['width']} input columns changed with them (column {shown}), in "
                f"{trial['moved']} of {trial['compared']} samples compared{what}",
                len(columns),
                expected=0,
                signal="source_change",
            ),
        ),
        Fix(
            "Make the feature from the labels of the training part alone (for the training rows "
            "themselves in folds), or leave it out."
        ),
    )
