"""Gradient marks on real tensors: which gradients were thrown away before any step could use
them.
"""

from __future__ import annotations

import pytest
import torch

from sawbones.observe.gradient_marks import GradientMarks


class Loop:
    """Two heads on one input, an optimizer over both, and the marks that a recorder would keep."""

    def __init__(self) -> None:
        self.first, self.second = (
            torch.ones(2, requires_grad=True),
            torch.ones(2, requires_grad=True),
        )
        self.params = [self.first, self.second]
        self.optimizer = torch.optim.SGD(self.params, lr=0.1)
        self.marks = GradientMarks()

    def zero_grad(self, set_to_none: bool) -> None:
        unused = self.marks.unused(self.params)
        self.optimizer.zero_grad(set_to_none=set_to_none)
        self.marks.cleared(self.params, unused)

    def backward(self, *params: torch.Tensor) -> None:
        self.marks.backward_begins()
        torch.stack([p.sum() for p in params]).sum().backward()
        self.marks.backward_ends()

    def step(self) -> int:
        lost = self.marks.lost(self.params)
        self.optimizer.step()
        self.marks.stepped(0, self.params)
        return lost


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_head_whose_gradient_is_cleared_before_the_step_has_lost_it(set_to_none: bool) -> None:
    loop = Loop()
    for _ in range(3):
        loop.zero_grad(set_to_none)
        loop.backward(loop.first)
        loop.zero_grad(set_to_none)
        loop.backward(loop.second)
        assert loop.step() == 1


@pytest.mark.parametrize("set_to_none", [True, False])
def test_two_passes_that_reach_the_same_parameters_lose_none(set_to_none: bool) -> None:
    loop = Loop()
    for _ in range(3):
        loop.backward(*loop.params)
        loop.zero_grad(set_to_none)
        loop.backward(*loop.params)
        assert loop.step() == 0


@pytest.mark.parametrize("set_to_none", [True, False])
def test_heads_that_take_turns_lose_none_however_often_they_are_cleared(set_to_none: bool) -> None:
    loop = Loop()
    for turn in range(4):
        loop.zero_grad(set_to_none)
        loop.zero_grad(set_to_none)
        loop.backward(loop.params[turn % 2])
        assert loop.step() == 0


def test_gradients_of_master_copies_are_handed_over_and_not_summed() -> None:
    loop = Loop()
    half = torch.ones(2, requires_grad=True)
    for _ in range(3):
        loop.backward(half)
        for master in loop.params:
            master.grad = torch.ones(2)
        assert loop.marks.uncleared(0) == 0
        loop.step()


def test_gradients_that_backward_passes_add_up_are_uncleared() -> None:
    loop = Loop()
    counts = []
    for _ in range(3):
        loop.backward(*loop.params)
        counts.append(loop.marks.uncleared(0))
        loop.step()
    assert counts == [0, 2, 2]
