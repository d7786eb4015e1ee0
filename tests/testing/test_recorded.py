"""The same assertions over recordings: synthetic ones for the order of events, real ones of a small
script.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.schema import Ending, Event, Run, Site
from sawbones.testing import (
    assert_causal,
    assert_decay_groups,
    assert_deterministic,
    assert_event_order,
    assert_free_of,
    assert_gradients_cleared,
    assert_loss_gets_logits,
    assert_runs,
    observe,
)

SCRIPT = """
import sys
import torch
from torch import nn

torch.manual_seed(0 if "--unseeded" not in sys.argv else int.from_bytes(__import__("os").urandom(4)))
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
for step in range(50):
    x = torch.randn(16, 4)
    scores = model(x)
    if "--softmax" in sys.argv:
        scores = scores.softmax(-1)
    loss = nn.functional.cross_entropy(scores, (x[:, 0] > 0).long())
    if "--keep" not in sys.argv:
        optimizer.zero_grad()
    loss.backward()
    if "--crash" in sys.argv and step == 2:
        raise RuntimeError("out of luck")
    optimizer.step()
"""


def _run(*kinds: str, ending: str = "finished") -> Run:
    site = Site("train.py", 7, "main", "loss.backward()")
    step, events = 0, []
    for i, kind in enumerate(kinds):
        events.append(Event(i, kind, step, 0, "train", 0.0, site))
        step += kind == "step"
    return Run("train.py", (), "", {}, Ending(ending, 1, "ValueError", "bad"), events=tuple(events))


ORDER = ("zero_grad", "backward", "step")


def test_the_usual_orders_pass() -> None:
    assert_event_order(_run(*ORDER, *ORDER), *ORDER)
    assert_event_order(_run("zero_grad", "backward", "backward", "step"), *ORDER)  # accumulation
    assert_event_order(
        _run("backward", "step", "zero_grad", "backward", "step", "zero_grad"),
        "backward",
        "step",
        "zero_grad",
    )
    assert_event_order(
        _run("backward", "step", "schedule", "backward", "step"),
        "backward",
        "step",
        "schedule",
        optional=["schedule"],
    )


@pytest.mark.parametrize(
    ("happened", "order", "told"),
    [
        (
            ("zero_grad", "backward", "zero_grad", "step"),
            ORDER,
            "backward is followed by zero_grad",
        ),
        (
            ("zero_grad", "backward", "step", "backward", "step"),
            ORDER,
            "step is followed by backward",
        ),
        (
            ("backward", "step", "clip", "backward", "step"),
            ("backward", "clip", "step"),
            "backward is followed by step",
        ),
        (
            ("backward", "clip", "step"),
            ("backward", "unscale", "clip", "step"),
            "unscale never happens",
        ),
        (("backward", "backward"), ("backward", "step"), "step never happens"),
    ],
)
def test_a_wrong_order_is_told_with_its_place(
    happened: tuple[str, ...], order: tuple[str, ...], told: str
) -> None:
    with pytest.raises(AssertionError, match=told) as caught:
        assert_event_order(_run(*happened), *order)
    assert " -> ".join(order) in str(caught.value)
    assert "never" in told or "train.py:7: loss.backward()" in str(caught.value)


def test_a_scheduler_before_the_step_is_told_even_when_it_is_optional() -> None:
    with pytest.raises(AssertionError, match="backward is followed by schedule"):
        assert_event_order(
            _run("backward", "schedule", "step"),
            "backward",
            "step",
            "schedule",
            optional=["schedule"],
        )


def test_an_order_needs_a_step_and_a_run_that_crashed_has_no_properties() -> None:
    with pytest.raises(ValueError, match="has no 'step'"):
        assert_event_order(_run(*ORDER), "zero_grad", "backward")
    with pytest.raises(
        AssertionError, match=r"train.py ended with ValueError: bad; expected a run"
    ):
        assert_event_order(_run(*ORDER, ending="exception"), *ORDER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("scripts")
    (made / "train.py").write_text(SCRIPT, encoding="utf-8")
    return made


def test_a_healthy_script_is_observed_and_holds(folder: Path) -> None:
    run = observe("train.py", steps=3, root=folder, twice=True)
    assert run.num_steps == 3
    assert_event_order(run, *ORDER)
    assert_gradients_cleared(run)
    assert_loss_gets_logits(run)
    assert_deterministic(run)
    assert_runs(run)
    assert_free_of(run, "loss.double-softmax")
    with pytest.raises(
        AssertionError,
        match=r"2 of 4 decayed parameters are gains or biases: 0.bias has weight_decay 0.1",
    ):
        assert_decay_groups(run)
    with pytest.raises(AssertionError, match="nothing to read causality from"):
        assert_causal(run)
    assert sorted(p.name for p in folder.iterdir()) == ["train.py"]


def test_a_sick_script_is_observed_and_told(folder: Path) -> None:
    run = observe("train.py", "--softmax", "--keep", "--unseeded", steps=3, root=folder, twice=True)
    with pytest.raises(
        AssertionError,
        match=r"gradients of the step before were still there at 2 of 2 steps",
    ):
        assert_gradients_cleared(run)
    with pytest.raises(
        AssertionError,
        match=r"loss.double-softmax: The loss gets probabilities",
    ):
        assert_loss_gets_logits(run)
    with pytest.raises(AssertionError, match=r"loss.double-softmax: The loss gets probabilities"):
        assert_free_of(run, "loss.double-softmax")
    with pytest.raises(AssertionError, match="differs first"):
        assert_deterministic(run)


def test_a_crash_is_told_with_its_line(folder: Path) -> None:
    run = observe("train.py", "--crash", steps=5, root=folder)
    with pytest.raises(AssertionError, match=r"ended with RuntimeError: out of luck") as caught:
        assert_runs(run)
    assert 'raise RuntimeError("out of luck")' in str(caught.value)
    with pytest.raises(ValueError, match=r"observe\(..., twice=True\)"):
        assert_deterministic(observe("train.py", steps=1, root=folder))


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no script nope.py in"):
        observe("nope.py", root=tmp_path)
