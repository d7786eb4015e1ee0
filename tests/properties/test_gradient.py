"""Gradients against finite differences: what is found, and what is not called a mistake."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sawbones.properties.gradient import FEW_COORDINATES, compare

GOOD = 1e-6


def cube(factor: float) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad * factor * 3 * x**2

    return Cube.apply


@pytest.mark.parametrize("size", [5, 500])
def test_a_right_gradient_agrees_to_a_millionth_and_one_off_by_a_hundred_thousandth_does_not(size):
    x = torch.randn(size, generator=torch.Generator().manual_seed(0))
    right, wrong = (compare(cube(factor), ((x,), {}), None) for factor in (1.0, 1.00001))
    assert right.error - right.unsure < GOOD
    assert wrong.error - wrong.unsure > GOOD


def test_every_coordinate_of_a_small_tensor_is_varied_beside_a_large_one():
    class Scaled(torch.autograd.Function):
        """Wrong for the last of three scales alone."""

        @staticmethod
        def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
            x, scale = ctx.saved_tensors
            slope = (grad * x).sum(0)
            slope[2] *= 1.001
            return grad * scale, slope

    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    found = compare(Scaled.apply, ((x, torch.ones(3)), {}), None)
    assert x.numel() > FEW_COORDINATES
    # three coordinates, two directions of the large tensor, six of both
    assert found.compared == 3 + 2 + 6
    assert found.error - found.unsure > 0.99e-3


def test_a_network_with_many_edges_is_no_mistake():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 8))
    found = compare(nn.Module.__call__, ((torch.randn(64, 32),), {}), net)
    assert found.error - found.unsure < GOOD


def test_a_target_that_asks_for_no_gradient_is_a_constant():
    class SquaredError(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, guess: Tensor, target: Tensor) -> Tensor:
            ctx.save_for_backward(guess, target)
            return ((guess - target) ** 2).sum()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
            guess, target = ctx.saved_tensors
            return grad * 2 * (guess - target), None

    guess, target = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    guess.requires_grad_()
    fixed = compare(SquaredError.apply, ((guess, target), {}), None)
    asked = compare(SquaredError.apply, ((guess, target.clone().requires_grad_()), {}), None)
    assert fixed.error - fixed.unsure < GOOD
    assert asked.error - asked.unsure > 0.1  # None where a gradient is asked for is a missing term


@pytest.mark.parametrize("transposed", [True, False])
def test_a_sparse_matrix_beside_the_input_is_left_as_it_is(transposed):
    class Spread(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, links: Tensor, x: Tensor) -> Tensor:
            ctx.links = links
            return torch.sparse.mm(links, x)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
            back = ctx.links.t() if transposed else ctx.links
            return None, torch.sparse.mm(back, grad)

    generator = torch.Generator().manual_seed(0)
    links = torch.rand(6, 6, generator=generator).triu().to_sparse()
    x = torch.randn(6, 2, generator=generator).requires_grad_()
    found = compare(Spread.apply, ((links, x), {}), None)
    assert (found.error - found.unsure < GOOD) == transposed
