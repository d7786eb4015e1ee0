"""Training data from after the moment of the test data

## What it sees
The times in the column named by `--time`. Fires when at least `time_overlap` (default 1 %) of the
training rows are later than the first per cent of the test rows. With a label it also trains a
small model on a sample twice, split at random and split by time, and shows both scores.

## Why it matters
In use the model only has the past. A score that was earned with the future in the training data
does not come back.

## Looks like
Good validation, bad first week in production; a back-test split by date gives a much lower score.

## Example
    train, test = train_test_split(orders, test_size=0.2, shuffle=True)

## Use instead
    orders = orders.sort_values("ordered_at")
    train, test = orders.iloc[:-20_000], orders.iloc[-20_000:]

## Confirm it
Split by time and score again: the drop is the leak. The finding shows it for a small model.

## False alarms
Data without drift and without memory of time scores the same either way; the two scores say so.
Name no `--time` where time carries no information.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L3.1.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.model import time_against_random
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding

FAULT = "evaluation.leak-temporal"


def look(case: Case) -> Iterator[Finding]:
    name = case.options.time
    if name is None:
        raise CannotLook("no time was named (--time COLUMN)")
    if len(case.splits) < 2:
        raise CannotLook("one split alone has no later one")
    for base, other in combinations(case.splits.values(), 2):
        if name not in other.columns:
            raise CannotLook(f"{other.role} has no column {name!r}")
        theirs = other.table.select(t=other.seconds(name))
        row = case.session.rows(
            theirs.aggregate(first=theirs.t.quantile(0.01), last=theirs.t.max(), n=theirs.t.count())
        )[0]
        if not row["n"]:
            raise CannotLook(
                f"{name!r} holds no times in {other.role}; a date, a timestamp or a "
                "number was expected"
            )
        mine = base.table.select(t=base.seconds(name))
        own = case.session.rows(
            mine.aggregate(
                n=mine.t.count(),
                later=(mine.t > float(row["first"])).cast("int64").sum(),
                first=mine.t.min(),
                last=mine.t.max(),
            )
        )[0]
        if not own["n"]:
            raise CannotLook(
                f"{name!r} holds no times in {base.role}; a date, a timestamp or a number "
                "was expected"
            )
        share = int(own["later"] or 0) / int(own["n"])
        if share < case.thresholds.time_overlap:
            continue
        dated = base.columns[name].kind == "time" or base.is_text(name)
        evidence = [
            Evidence(
                (
                    f"{int(own['later']):,} of {int(own['n']):,} rows of {base.role} are "
                    f"later than the first per cent of {other.role}"
                ),
                "times",
                value=share,
                expected=0.0,
            ),
            Evidence(
                f"{base.role} runs from {_moment(own['first'], dated)} to "
                f"{_moment(own['last'], dated)}, {other.role} from "
                f"{_moment(row['first'], dated)} to {_moment(row['last'], dated)}",
                "times",
            ),
        ]
        scores = time_against_random(case, base, other, name)
        status, confidence = "likely", 0.85
        if scores is not None:
            at_random, by_time, what = scores
            evidence.append(
                Evidence(
                    (
                        f"a small model on a sample: {what} {at_random:.3f} split at random, "
                        f"{by_time:.3f} split by time"
                    ),
                    "model",
                    value=by_time,
                    expected=at_random,
                )
            )
            if at_random - by_time > 0.05:
                status, confidence = "proven", 0.95
        yield made(
            FAULT,
            status,
            confidence,
            f"{per_cent(share)} of {base.role} is later than the start of {other.role}",
            evidence,
            (
                f"Split by {name}: everything up to one moment for training, everything after "
                "it for testing."
            ),
            column=name,
            splits=[base.role, other.role],
            share=share,
            threshold=case.thresholds.time_overlap,
        )


def _moment(value: Any, dated: bool) -> str:
    if value is None:
        return "?"
    if dated:
        try:
            return datetime.datetime.fromtimestamp(float(value), datetime.UTC).strftime(
                "%Y-%m-%d %H:%M"
            )
        except (OverflowError, ValueError, OSError):
            pass
    return f"{float(value):.10g}"
