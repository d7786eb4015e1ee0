"""Learning, repeating and resuming."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import nn

from sawbones.testing import (
    assert_deterministic,
    assert_initial_loss,
    assert_overfits_one_batch,
    assert_resumes_exactly,
)


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    stream = torch.Generator().manual_seed(0)
    return torch.randn(16, 6, generator=stream), torch.randint(0, 4, (16,), generator=stream)


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))


def _loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def test_one_batch_is_learned_or_the_losses_are_told() -> None:
    model = _model()
    assert_overfits_one_batch(model, _batch(), _loss, torch.optim.Adam(model.parameters(), lr=0.02))
    still = _model()
    with pytest.raises(
        AssertionError,
        match=r"one repeated batch: loss 1\.\d+ -> 1\.\d+ in 20 steps; expected under 0\.\d+",
    ):
        assert_overfits_one_batch(
            still, _batch(), _loss, torch.optim.SGD(still.parameters(), lr=1e-6), steps=20
        )


def test_a_loss_that_turns_nan_is_told_with_its_step() -> None:
    model = _model()
    taken: list[int] = []

    def turns(model: nn.Module, batch: Any) -> torch.Tensor:
        taken.append(1)
        return _loss(model, batch) * (math.nan if len(taken) == 3 else 1.0)

    with pytest.raises(AssertionError, match="is nan at step 2; expected finite"):
        assert_overfits_one_batch(
            model, _batch(), turns, torch.optim.SGD(model.parameters(), lr=1e-3)
        )


def test_the_first_loss_is_that_of_guessing() -> None:
    assert_initial_loss(_model(), _batch(), _loss, num_classes=4)
    with pytest.raises(
        AssertionError,
        match=r"the loss before training is 1\.\d+; expected log 40 = 3.689, up to 30%",
    ):
        assert_initial_loss(_model(), _batch(), _loss, num_classes=40)
    with pytest.raises(TypeError, match="one of the two"):
        assert_initial_loss(_model(), _batch(), _loss)


def test_two_runs_from_one_seed_agree_or_the_first_step_is_told() -> None:
    def train(seeded: bool) -> list[float]:
        if seeded:
            torch.manual_seed(3)
        model = nn.Linear(6, 4)
        return [float(_loss(model, _batch()).detach()) for _ in range(2)]

    assert_deterministic(lambda: train(True))
    with pytest.raises(
        AssertionError, match=r"loss [\d.]+ at step 0; expected [\d.]+, bit for bit"
    ):
        assert_deterministic(lambda: train(False))


class Training:
    """A run whose momentum is part of its checkpoint, or is not."""

    def __init__(self) -> None:
        self.model = _model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def train(self, first: int, last: int) -> list[float]:
        losses = []
        for _ in range(first, last):
            self.optimizer.zero_grad()
            loss = _loss(self.model, _batch())
            loss.backward()
            self.optimizer.step()
            losses.append(float(loss.detach()))
        return losses


def test_a_resumed_run_goes_on_exactly_or_the_first_loss_is_told() -> None:
    def save(state: Training) -> Any:
        return copy.deepcopy((state.model.state_dict(), state.optimizer.state_dict()))

    def load(state: Training, kept: Any) -> None:
        state.model.load_state_dict(kept[0])
        state.optimizer.load_state_dict(kept[1])

    def load_weights(state: Training, kept: Any) -> None:
        state.model.load_state_dict(kept[0])

    assert_resumes_exactly(Training, Training.train, save, load)
    with pytest.raises(
        AssertionError,
        match=r"resumed after step 4: loss [\d.]+ at step 5; expected [\d.]+, bit for bit",
    ):
        assert_resumes_exactly(Training, Training.train, save, load_weights)
