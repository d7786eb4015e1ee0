"""The label's classes: how rare the rarest is, and whether their numbers run from 0 without a
gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.engine.session import ibis_module
from sawbones.audits.options import CannotLook
from sawbones.schema import Evidence, Finding

FAULT = "data.class-imbalance"
ALSO = ("data.label-out-of-range",)


def look(case: Case) -> Iterator[Finding]:
    split = case.first
    name = case.need_label(split)
    if case.label_kind != "class":
        raise CannotLook(f"{name!r} is a quantity")
    ibis = ibis_module()
    labels = split.table.select(y=case.label_of(split))
    rows = case.session.rows(
        labels.group_by("y").aggregate(n=labels.count()).order_by([ibis.desc("n"), "y"]).limit(1000)
    )
    counts = {row["y"]: int(row["n"]) for row in rows if row["y"] is not None}
    missing = sum(int(row["n"]) for row in rows if row["y"] is None)
    total = sum(counts.values())
    if missing:
        yield made(
            ALSO[0],
            "likely",
            0.85,
            f"{missing:,} rows of {split.role} have no {name}",
            [
                Evidence(
                    f"{missing:,} of {split.rows:,} labels are missing",
                    "labels",
                    value=missing / split.rows,
                    expected=0.0,
                )
            ],
            "Drop these rows, or give the loss an ignore index for them.",
            column=name,
            rows=missing,
        )
    if len(counts) == 1:
        yield made(
            FAULT,
            "likely",
            0.9,
            f"{name} is {case.shown(next(iter(counts)))} in every row of {split.role}",
            [Evidence(f"{total:,} rows, one class", "labels", value=1, expected=2)],
            "Read the label from the right column.",
            column=name,
        )
        return
    rarest, least = min(counts.items(), key=lambda item: item[1])
    if counts and least / total < case.thresholds.imbalance:
        entropy = -sum(n / total * math.log(n / total) for n in counts.values()) / math.log(
            len(counts)
        )
        yield made(
            FAULT,
            "suspected",
            0.5,
            f"{name} = {case.shown(rarest)} is {per_cent(least / total)} of {split.role}",
            [
                Evidence(
                    f"{least:,} of {total:,} rows; entropy of the classes {entropy:.2f} of 1",
                    "labels",
                    value=least / total,
                    expected=case.thresholds.imbalance,
                )
            ],
            (
                "Weigh the classes in the loss or sample the rare one more often; judge by a "
                "metric of that class."
            ),
            column=name,
        )
    yield from _numbered(case, name, counts)


def _numbered(case: Case, name: str, counts: dict[object, int]) -> Iterator[Finding]:
    """Integer classes are what a cross-entropy indexes by."""
    if not case.first.columns[name].integer or len(counts) < 3:
        return
    numbers = sorted(int(v) for v in counts if isinstance(v, float))
    if not numbers or (numbers[0] == 0 and numbers[-1] == len(numbers) - 1):
        return
    yield made(
        ALSO[0],
        "suspected",
        0.4,
        (
            f"{name} runs from {numbers[0]} to {numbers[-1]} with {len(numbers)} classes, not "
            f"from 0 to {len(numbers) - 1}"
        ),
        [
            Evidence(
                f"classes: {', '.join(map(str, numbers[:12]))}{' …' if len(numbers) > 12 else ''}",
                "labels",
                value=numbers[0],
                expected=0,
            )
        ],
        (
            "Map the classes to 0 … C-1 before they index a loss, or use an ignore index for "
            "the one outside."
        ),
        column=name,
    )
