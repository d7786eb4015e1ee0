"""A recording that does not say which state was put back does not say that it was not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sawbones.faults import read
from sawbones.schema import Ending, Event, Optimizer, Run
from sawbones.schema.observed import Observed
from sawbones.store.codec import decode_fields

FAULT = "loop.resume-incomplete"
RESTORED = {"kind": "optimizer", "index": 0, "step": 0, "seq": 1, "site": None, "empty": False}


def _resumed(facts: dict[str, Any]) -> Run:
    load = Event(0, "load", 0, 0, "train", 0.0, data={"kinds": ["model", "optimizer", "step"]})
    steps = tuple(Event(2 + s, "step", s, 0, "train", 0.0, data={"optimizer": 0}) for s in range(4))
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        events=(load, *steps),
        steps={"step": np.arange(4), "lr": np.full(4, 1e-3)},
        optimizers=(Optimizer(0, "Adam", {"lr": 1e-3, "betas": (0.9, 0.99)}, ({"lr": 1e-3},)),),
        **decode_fields(Observed, facts),
    )


@pytest.mark.parametrize(
    ("facts", "statuses"),
    [({"restored": []}, ["proven"]), ({"restored": [RESTORED]}, []), ({}, [])],
)
def test_only_what_was_recorded_is_judged(facts: dict[str, Any], statuses: list[str]) -> None:
    reading = read(_resumed(facts), FAULT, strict=True)
    assert [f.status for f in reading.findings] == statuses
    blind = [c.why for c in reading.could_not_look]
    assert bool(blind) is ("restored" not in facts)
