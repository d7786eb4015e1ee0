"""An optimizer of a sharded run holds the share of its rank; the other ranks hold the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sawbones.faults import read
from sawbones.schema import Ending, Event, Optimizer, Run, Tensor


def _rank(number: int, share: set[int], world_size: int = 2) -> Run:
    tensors = tuple(
        Tensor(i, f"{i}.weight", (8, 8), "float32", True, "Linear", 0 if i in share else -1)
        for i in range(4)
    )
    kinds = ("backward", "step")
    events = tuple(
        Event(2 * s + i, kind, s, 0, "train", 0.0, rank=number, data={"optimizer": 0})
        for s in range(4)
        for i, kind in enumerate(kinds)
    )
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        rank=number,
        world_size=world_size,
        events=events,
        steps={"step": np.arange(4)},
        tensors=tensors,
        optimizers=(Optimizer(0, "AdamW", {"lr": 1e-3}, ({"lr": 1e-3},)),),
        loose_gradients=tuple(i for i in range(4) if i not in share),
    )


def _said(run: Run) -> list[str]:
    found = read(run, "optimizer.missing-params", strict=True).findings
    return [f.status for f in found]


def test_what_another_rank_holds_is_not_missing() -> None:
    first, second = _rank(0, {0, 1}), _rank(1, {2, 3})
    assert _said(replace(first, ranks=(second,))) == []
    assert _said(replace(first, ranks=(_rank(1, {2}),))) == ["proven"]


def test_while_a_rank_was_not_recorded_it_is_suspected_at_most() -> None:
    assert _said(_rank(0, {0, 1})) == ["suspected"]
    assert _said(_rank(0, {0, 1}, world_size=1)) == ["proven"]
