"""The section about the ranks: how long their steps take, and which of them the others wait for."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sawbones.page.blocks import Block, columns, picture, table
from sawbones.schema import Run


def ranks(run: Run) -> list[Block]:
    every = [one for one in (run, *run.ranks) if one.num_steps]
    if not run.ranks:
        return [table("Ranks", (), (), "this run has one process")]
    before = [until_backward(one) for one in every]
    rows: list[tuple[int, int, float, float, float | None]] = []
    for one, own in zip(every, before, strict=True):
        step_ms, wait_ms = (float(np.nanmedian(one.steps[n])) for n in ("step_ms", "data_wait_ms"))
        middle = float(np.median(list(own.values()))) if own else None
        rows.append((one.rank, one.num_steps, step_ms, wait_ms, middle))
    heads = ("rank", "steps", "step, ms (median)", "waiting for data, ms", "until backward, ms")
    drawn = columns([str(row[0]) for row in rows], "ms a step", [row[2] for row in rows])
    last = last_to_arrive(before)
    said = "how far each rank was when the others waited is not known"
    if last is not None:
        at, times, steps = last
        said = f"rank {every[at].rank} comes last to its backward pass in {times} of {steps} steps"
    return [
        {**table("Ranks", heads, rows), "note": said},
        picture("Step time by rank", drawn, ""),
    ]


def until_backward(run: Run) -> dict[int, float]:
    """step -> milliseconds from the end of the step before it until its first backward pass: what a
    rank does before it meets the others.
    """
    ended: dict[int, float] = {}
    found: dict[int, float] = {}
    for event in run.of_kind("step", "backward"):
        if event.kind == "step":
            ended[event.step] = event.time
        elif event.step not in found and event.step - 1 in ended:
            found[event.step] = 1e3 * (event.time - ended[event.step - 1])
    return found


def last_to_arrive(before: list[dict[int, float]]) -> tuple[int, int, int] | None:
    """(which of the ranks was mostly last, how often, of how many steps)."""
    steps = set.intersection(*(set(own) for own in before)) if before else set()
    if len(before) < 2 or not steps:
        return None
    last = Counter(max(range(len(before)), key=lambda r: before[r][step]) for step in steps)
    at, times = last.most_common(1)[0]
    return at, times, len(steps)
