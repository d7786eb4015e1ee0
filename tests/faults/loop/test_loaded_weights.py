"""Weights that were put into a model without a word of torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crash_runs import died

from sawbones.evidence import NothingToJudge
from sawbones.evidence.limits import evaluation as limits
from sawbones.faults.evaluation.overfitting.check import _is_put_back
from sawbones.faults.loop.snapshot_not_copied.check import check as snapshot
from sawbones.faults.loop.state_dict_mismatch.check import check as mismatch
from sawbones.schema import Ending, Evaluated, Run, Site
from sawbones.schema.observed import Observed
from sawbones.store.codec import decode_fields

SITE = Site("train.py", 9, "main", "model.load_state_dict(state, strict=False)")


def _row(**changed: Any) -> dict[str, Any]:
    row = {
        "kind": "model",
        "step": 0,
        "site": SITE,
        "given": 4,
        "taken": 4,
        "missing": 0,
        "same": 0,
        "first_missing": "",
        "first_unexpected": "",
    }
    return row | changed


NOTHING = {
    "taken": 0,
    "missing": 4,
    "first_missing": "a.weight",
    "first_unexpected": "net.a.weight",
}


def _run(*rows: dict[str, Any], steps: int = 20) -> Run:
    numbers = {"step": np.arange(steps, dtype=float)}
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished", 0),
        steps=numbers,
        **decode_fields(Observed, {"restored": rows}),
    )


def test_weights_of_which_none_is_taken_are_proven_with_the_prefix_that_is_too_much():
    (found,) = mismatch(_run(_row(**NOTHING)))
    assert found.status == "proven" and found.where == (SITE,)
    assert "'net.'" in found.fix.summary


def test_a_new_head_and_a_second_try_that_fits_are_meant():
    assert not list(mismatch(_run(_row(taken=3, missing=1))))
    assert not list(mismatch(_run(_row(**NOTHING), _row())))
    assert not list(mismatch(_run(_row(**NOTHING | {"given": 0}))))


def test_weights_that_are_the_models_own_are_proven():
    (found,) = snapshot(_run(_row(step=12, same=4)))
    assert found.status == "proven"


def test_copies_are_silent_and_a_start_from_a_checkpoint_is_not_judged():
    assert not list(snapshot(_run(_row(step=12))))
    with pytest.raises(NothingToJudge):
        list(snapshot(_run(_row(step=0, same=4))))


@pytest.mark.parametrize(
    ("row", "cured"),
    [
        ({"step": 20}, True),  # of which time is not known
        ({"step": 20, "same": 4}, False),
        ({"step": 20, "of_step": 5}, True),
        ({"step": 20, "of_step": 10}, True),
        ({"step": 20, "of_step": 15}, False),  # its best by the training loss, say
    ],
)
def test_a_model_that_gets_weights_from_before_the_rise_back_does_not_overfit(row, cured):
    steps, values = np.array([5, 10, 15, 20]), np.array([1.0, 1.1, 1.5, 1.8])
    assert _is_put_back(_run(_row(**row)), steps, values, limits.RISE) is cured


def test_a_model_that_gets_the_weights_with_most_right_answers_back_does_not_overfit():
    graded = tuple(
        Evaluated(s, "", (50,), (r,)) for s, r in ((5, 40), (10, 41), (15, 45), (20, 44))
    )
    steps, values = np.array([5, 10, 15, 20]), np.array([1.0, 1.1, 1.5, 1.8])
    rows = (_row(step=20, of_step=at) for at in (15, 20))
    best, last = (replace(_run(row), evaluated=graded) for row in rows)
    assert _is_put_back(best, steps, values, limits.RISE)
    assert not _is_put_back(last, steps, values, limits.RISE)


FOLLOWING = """
import torch
from torch import nn

torch.manual_seed(0)
online, target = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(16, 3)
    with torch.no_grad():
        wanted = x.sum(1, keepdim=True) + 0.5 * target(x)
    loss = nn.functional.mse_loss(online(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 3:
        target.load_state_dict({followed}.state_dict())
"""


def test_a_model_that_is_loaded_from_itself_is_told_from_one_that_was_kept(tmp_path):
    (found,) = snapshot(died(tmp_path, FOLLOWING.format(followed="target")))
    assert found.status == "proven" and "from itself" in found.title
    assert [site.code for site in found.where] == ["target.load_state_dict(target.state_dict())"]
    healthy = tmp_path / "healthy"
    healthy.mkdir()
    assert not list(snapshot(died(healthy, FOLLOWING.format(followed="online"))))
