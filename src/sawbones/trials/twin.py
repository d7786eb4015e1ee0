"""Two runs with one seed: what differs first, in the order in which a run can come apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sawbones.schema import Batch, Run, Site
from sawbones.schema.one_off import Difference, SeedDiffers, TwinRun


def compare(first: Run, second: Run) -> TwinRun:
    steps = min(first.num_steps, second.num_steps)
    found = _batches_differ(first, second) or _losses_differ(first, second, steps)
    if (
        found is None
        and first.ending.kind != second.ending.kind
        and "budget" not in (first.ending.kind, second.ending.kind)
    ):
        found = Difference("ending", first=first.ending.kind, second=second.ending.kind)
    seeded = sorted({e.data.get("library", "") for e in first.of_kind("seed")})
    return TwinRun(steps, tuple(seeded), _seed_differs(first, second), found)


def _seed_differs(first: Run, second: Run) -> SeedDiffers | None:
    """The first seeding call that was given another value, with its place."""
    for a, b in zip(first.of_kind("seed"), second.of_kind("seed"), strict=False):
        if a.data.get("library") == b.data.get("library") and a.data.get("value") != b.data.get(
            "value"
        ):
            values = a.data.get("value"), b.data.get("value")
            return SeedDiffers(str(a.data.get("library")), *values, a.site)
    return None


def _batches_differ(first: Run, second: Run) -> Difference | None:
    # From some batch on a run keeps only some of them, and not every run from the same one on.
    others = {b.index if b.index >= 0 else i: b for i, b in enumerate(second.batches)}
    for i, a in enumerate(first.batches):
        b = others.get(a.index if a.index >= 0 else i)
        if b is None:
            continue
        if a.fingerprints == b.fingerprints and a.fingerprints:
            continue
        if not a.fingerprints and _shapes(a) == _shapes(b):
            continue
        reordered = sorted(a.fingerprints) == sorted(b.fingerprints)
        return Difference(
            "batch_order" if reordered or _same_pool(first, second) else "batch_values",
            a.step,
            a.index if a.index >= 0 else i,
            site=_loader_site(first, a),
        )
    return None


def _same_pool(first: Run, second: Run) -> bool:
    """The same samples in another order: a good share of one run's samples is met in the other."""
    a = {f for b in first.batches for f in b.fingerprints}
    b = {f for x in second.batches for f in x.fingerprints}
    return len(a & b) > 0.2 * min(len(a), len(b)) if a and b else False


def _shapes(batch: Batch) -> list[Any]:
    return [t.get("shape") for t in batch.tensors]


def _loader_site(run: Run, batch: Batch) -> Site | None:
    for event in run.of_kind("batch", "forward"):
        if event.step == batch.step and event.site is not None:
            return event.site
    return None


def _losses_differ(first: Run, second: Run, steps: int) -> Difference | None:
    a, b = first.losses[:steps], second.losses[:steps]
    bad = np.flatnonzero(~((a == b) | (np.isnan(a) & np.isnan(b))))
    if not len(bad):
        return None
    i = int(bad[0])
    gap = (
        abs(a[i] - b[i]) / max(abs(a[i]), 1e-12)
        if math.isfinite(a[i]) and math.isfinite(b[i])
        else math.inf
    )
    site = next(
        (e.site for e in first.of_kind("backward") if e.step == i and e.site is not None), None
    )
    return Difference(
        "loss", i, first=float(a[i]), second=float(b[i]), relative=float(gap), site=site
    )
