"""Backward passes that a script wrote itself: constants beside what is learned, and the first layer,
whose input is data.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.faults.model.wrong_gradient.check import check

LAYERS = """
import torch
from torch import nn

class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight * {factor}, grad.t() @ x

class Charge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, guess, target, links):
        ctx.save_for_backward(guess, target)
        ctx.links = links
        return (torch.sparse.mm(links, guess - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad):
        guess, target = ctx.saved_tensors
        gap = torch.sparse.mm(ctx.links, guess - target)
        return grad * 2 * torch.sparse.mm(ctx.links.t(), gap) / gap.numel(), None, None

torch.manual_seed(0)
first, second = (nn.Parameter(torch.randn(n, 6) * 0.3) for n in (6, 2))
links = torch.rand(24, 24).triu().to_sparse()
rows, goals = torch.randn(24, 6), torch.randn(24, 2)
optimizer = torch.optim.SGD([first, second], lr=1e-3)
for step in range(6):
    optimizer.zero_grad()
    guess = Weighted.apply(torch.tanh(Weighted.apply(rows, first)), second)
    Charge.apply(guess, goals, links).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("factor", "wrong"), [("1.0", False), ("0.5", True)])
def test_inputs_are_compared_once_they_ask_for_a_gradient(
    factor: str, wrong: bool, tmp_path: Path
) -> None:
    found = list(check(died(tmp_path, LAYERS.format(factor=factor))))
    assert ["Weighted" in one.title for one in found] == [True] * wrong
