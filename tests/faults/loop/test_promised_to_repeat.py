"""Which seeds promise that training repeats: torch's does, one of the data alone does not."""

from __future__ import annotations

import pytest

from sawbones.faults.loop.nondeterminism.check import check
from sawbones.schema import Ending, Event, Run
from sawbones.schema.one_off import Difference, TwinRun


@pytest.mark.parametrize(
    ("seeded", "status"),
    [
        ((), "suspected"),
        (("numpy",), "suspected"),
        (("numpy", "random"), "suspected"),
        (("torch",), "proven"),
        (("numpy", "torch"), "proven"),
    ],
)
def test_a_seed_of_the_data_alone_does_not_promise_the_same_losses(seeded, status):
    events = tuple(
        Event(i, "seed", 0, 0, "train", 0.0, data={"library": library, "handed": True})
        for i, library in enumerate(seeded)
    )
    differs = Difference("loss", 0, first=1.9, second=2.1, relative=0.1)
    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        events=events,
        twin_run=TwinRun(25, seeded, None, differs),
    )
    assert [finding.status for finding in check(run)] == [status]
