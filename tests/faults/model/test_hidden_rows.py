"""Queries all of whose keys are hidden by a number, where that matters and where it does not."""

from __future__ import annotations

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import Tensor, nn
from torch.nn import functional

from sawbones.faults.model.over_masking.check import check
from sawbones.schema import Ending, Run

GIVEN = torch.randn(4, 10, 6, generator=torch.Generator().manual_seed(3))
LENGTHS = torch.tensor([10, 7, 8, 6])
REAL = torch.arange(10) < LENGTHS[:, None]
ANSWERS = torch.arange(40).view(4, 10) % 3


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ask, self.offer, self.out = nn.Linear(6, 5), nn.Linear(6, 5), nn.Linear(6, 3)

    def forward(self, allowed: Tensor) -> Tensor:
        scores = self.ask(GIVEN) @ self.offer(GIVEN).mT / 5**0.5
        scores = torch.where(allowed, scores, torch.tensor(-1e9))
        return self.out(GIVEN + torch.softmax(scores, -1) @ GIVEN)


def seen(allowed: Tensor, counted: Tensor) -> Run:
    model = Reader()

    def loss() -> Tensor:
        return functional.cross_entropy(model(allowed)[counted], ANSWERS[counted])

    return Run("train.py", (), "", {}, Ending("finished"), deep=(observe(model, loss),))


def neighbours(with_itself: bool) -> Tensor:
    """The last two of each set have none."""
    near = torch.ones(10, 10, dtype=torch.bool)
    near[-2:] = near[:, -2:] = False
    return near.fill_diagonal_(with_itself).expand(4, 10, 10)


@pytest.mark.parametrize("with_itself", [False, True])
def test_nodes_without_neighbours_look_at_everything_unless_they_see_themselves(
    with_itself: bool,
) -> None:
    found = list(check(seen(neighbours(with_itself), torch.ones(4, 10, dtype=torch.bool))))
    assert [f.status for f in found] == ([] if with_itself else ["likely"])
    assert all("8 of 40 queries" in f.evidence[0].text for f in found)


def test_padded_queries_that_the_loss_leaves_out_may_look_at_what_they_like() -> None:
    both = REAL[:, :, None] & REAL[:, None, :]
    run = seen(both, REAL)
    assert run.deep[0].probes["blind_rows"][0]["hidden"] == 9
    assert not list(check(run))
