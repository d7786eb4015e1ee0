"""One user, patient or document on both sides of a split

## What it sees
The values of the column named by `--group` in each split. Fires when a share of rows above `group`
(default 0: any row) belongs to a group that the other split has too.

## Why it matters
Rows of one group are alike beyond what the features say. A model that has met the group recognises
it, and the score promises that for strangers.

## Looks like
Test scores far above those of the first new customers, hospitals or authors; the gap closes when
whole groups are held out.

## Example
    train, test = train_test_split(rows, test_size=0.2)

## Use instead
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.2)
    train_index, test_index = next(splitter.split(rows, groups=rows["patient"]))

## Confirm it
No experiment is needed: the ids are the same. To measure what it costs, score once with whole
groups held out.

## False alarms
A column that is no group (a country, a product class) is on both sides by design: do not name it.
Missing ids are not a group.

## References
Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
(2023), leak L3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding

FAULT = "evaluation.leak-group"


def look(case: Case) -> Iterator[Finding]:
    name = case.options.group
    if name is None:
        raise CannotLook("no group was named (--group COLUMN)")
    if len(case.splits) < 2:
        raise CannotLook("one split alone has nothing to share groups with")
    ibis = ibis_module()
    for base, other in combinations(case.splits.values(), 2):
        if name not in other.columns or name not in base.columns:
            raise CannotLook(
                f"{other.role if name not in other.columns else base.role} has no column {name!r}"
            )
        counts = []
        for split in (base, other):
            ids = split.table.select(g=split.category(name)).filter(ibis._.g.notnull())
            counts.append(ids.group_by("g").aggregate(n=ids.count()))
        mine, theirs = counts
        both = theirs.inner_join(mine.rename(m="n"), "g")
        row = case.session.rows(
            both.aggregate(groups=both.count(), here=both.n.sum(), there=both.m.sum())
        )[0]
        groups, here, there = int(row["groups"]), int(row["here"] or 0), int(row["there"] or 0)
        total = int(case.session.rows(theirs.aggregate(n=theirs.count()))[0]["n"])
        share = here / other.rows
        if not groups or share <= case.thresholds.group:
            continue
        shown = case.session.rows(both.order_by([ibis.desc("n"), "g"]).limit(10))
        examples = [
            (
                f"{name}={case.shown(r['g'])}: {r['m']:,} rows in {base.role}, {r['n']:,} in "
                f"{other.role}"
            )
            for r in shown
        ]
        yield made(
            FAULT,
            "proven",
            0.95,
            f"{groups:,} of {total:,} values of {name} in {other.role} are in {base.role} too",
            [
                Evidence(
                    f"{here:,} of {other.rows:,} rows of {other.role} ({per_cent(share)}) "
                    f"belong to a {name} that {base.role} "
                    f"has met "
                    f"({there:,} rows there)",
                    "group counts",
                    value=share,
                    expected=case.thresholds.group,
                ),
                *(Evidence(text, "groups") for text in examples[:3]),
            ],
            (
                f"Split by {name}: put all rows of one {name} on one side (scikit-learn: "
                "GroupShuffleSplit, GroupKFold)."
            ),
            column=name,
            splits=[base.role, other.role],
            share=share,
            threshold=case.thresholds.group,
            examples=examples,
        )
