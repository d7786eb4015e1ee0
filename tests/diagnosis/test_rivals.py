"""A rival is tried only where it can matter."""

from __future__ import annotations

import numpy as np
import pytest

from sawbones.diagnosis.rivals import BATTERIES
from sawbones.schema import LAYERS, Ending, Event, Module, Optimizer, Run

LEARNS_NOT = {rival.asked: rival for rival in BATTERIES["does-not-learn"]}

IN_EVAL_MODE = Event(
    0, "forward", 0, 0, "train", 0.0, data={"grad": True, "training": False, "top": True}
)


def run(group: dict | None = None, lr: list[float] | None = None, **more: object) -> Run:
    usual = {"lr": 0.1, "momentum": 0.9}
    optimizer = Optimizer(0, "SGD", {"lr": 0.1}, (group or usual,))
    steps = {"lr": np.array(lr or [0.1] * 4), "step": np.arange(4.0)}
    return Run(
        "train.py", (), "", {}, Ending("finished"), steps=steps, optimizers=(optimizer,), **more
    )  # type: ignore[arg-type]


def test_nothing_is_switched_off_that_is_not_on():
    plain = run()
    asked = {name for name, rival in LEARNS_NOT.items() if rival.applies(plain)}
    assert not asked & {"constant-lr", "default-moments", "no-decay", "no-dropout", "train-mode"}
    assert {"lr=0.1", "lr=10", "standard-inputs", "default-init", "warm-up"} <= asked


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("constant-lr", run(lr=[0.0, 0.01, 0.02, 0.03])),
        ("constant-lr", run(lr=[0.0] * 4)),
        ("default-moments", run({"lr": 0.1, "momentum": 0.999})),
        ("default-moments", run({"lr": 0.1, "betas": (0.9, 0.999), "eps": 10.0})),
        ("default-moments", run({"lr": 0.1, "betas": [0.5, 0.6], "eps": 1e-8})),
        ("no-decay", run({"lr": 0.1, "weight_decay": 1.0})),
        ("no-dropout", run(modules=(Module("a", "Dropout", {"p": 0.9}, 0, 0),))),
        ("train-mode", run(events=(IN_EVAL_MODE,))),
    ],
)
def test_a_setting_of_the_users_own_is_worth_a_run(asked, seen):
    assert LEARNS_NOT[asked].applies(seen)


def test_a_warm_up_is_not_added_to_one():
    assert not LEARNS_NOT["warm-up"].applies(run(lr=[0.01, 0.05, 0.1, 0.1]))
    usual = run({"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8})
    assert not LEARNS_NOT["default-moments"].applies(usual)


def test_every_rival_has_a_layer_of_the_report():
    assert {r.layer for rivals in BATTERIES.values() for r in rivals} <= set(LAYERS)


def test_the_same_change_is_not_tried_twice_for_one_symptom():
    for rivals in BATTERIES.values():
        asked = [rival.asked for rival in rivals]
        assert len(asked) == len(set(asked))
