"""loop.slow-rank by the order of events: who comes last, and whether the others wait for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sawbones.faults.loop.slow_rank.check import check
from sawbones.schema import Batch, Ending, Event, Finding, Run, Site
from sawbones.schema.run import STEP_COLUMNS
from sawbones.schema.standing import Standing, StandingLine

STEPS = 40
DDP = {"cls": "DistributedDataParallel"}
SPECTRUM, CALL = Site("train.py", 12), Site("train.py", 10)


def _rank(rank: int, alone_ms: list[float], meeting_ms: list[float], values: int = 64) -> Run:
    events = [Event(1, "parallel", 0, 0, "train", 0.0, data=DDP)]
    now = 0.0
    for step in range(STEPS):
        for kind, passed in (
            ("forward", 1.0),
            ("backward", alone_ms[step]),
            ("step", meeting_ms[step]),
        ):
            now += passed / 1e3
            events.append(Event(len(events) + 1, kind, step, 0, "train", now, CALL))
    steps = {name: np.zeros(STEPS) for name in STEP_COLUMNS}
    steps["step"] = np.arange(float(STEPS))
    shape = {"path": "0", "shape": [values], "dtype": "float32"}
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps=steps,
        events=tuple(events),
        batches=tuple(Batch(s, 0, "train", "model", 0.0, (shape,)) for s in range(STEPS)),
        rank=rank,
        world_size=2,
        standing=Standing(99, True, 0, (StandingLine(SPECTRUM, 2.0),)) if rank else None,
    )


def _said(slow: list[float], waits: float, values: int = 64) -> list[Finding]:
    other = _rank(1, slow, [5.0] * STEPS, values)
    return list(check(replace(_rank(0, [20.0] * STEPS, [waits] * STEPS), ranks=(other,))))


def test_the_rank_that_the_others_wait_for_is_named_with_the_line_that_it_stands_at() -> None:
    (found,) = _said([60.0] * STEPS, waits=45.0)
    assert "Rank 1 is 40 ms slower" in found.title and found.status == "likely"
    assert found.where == (SPECTRUM, CALL)


@pytest.mark.parametrize(
    "slow, waits, values",
    [
        pytest.param([60.0] * STEPS, 5.0, 64, id="nobody waits"),
        pytest.param([60.0] * STEPS, 45.0, 200, id="it has more to do"),
        pytest.param([60.0, 5.0] * (STEPS // 2), 45.0, 64, id="every second step"),
        pytest.param([25.0] * STEPS, 10.0, 64, id="a few milliseconds"),
    ],
)
def test_ranks_that_differ_otherwise_are_not_slow(
    slow: list[float], waits: float, values: int
) -> None:
    assert _said(slow, waits, values) == []
