"""Where the examples of a batch lie, read off how they were drawn."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones import faults
from sawbones.schema import Ending, Module, Run

TABLE = torch.randn(60, 9, 4, generator=torch.Generator().manual_seed(0))
MARKS = (TABLE[..., 0] > 0).long()
ORDER = torch.randperm(60, generator=torch.Generator().manual_seed(1))


class Tagger(nn.Module):
    def __init__(self, batch_first: bool, classes: int = 2) -> None:
        super().__init__()
        self.lift = nn.Linear(4, 8)
        self.gru = nn.GRU(8, 8, batch_first=batch_first)
        self.out = nn.Linear(8, classes)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.out(self.gru(self.lift(given))[0])


def watched(model, loss):
    torch.manual_seed(0)
    deep = observe(model, loss)
    modules = (Module("gru", "GRU", {"batch_first": model.gru.batch_first}, 1, 1),)
    run = Run("train.py", (), "", {}, Ending("finished", 0), deep=(deep,), modules=modules)
    found = faults.read(run, "model.cross-sample-leak").findings
    return deep, [f.status for f in found]


def tags(model, given, wanted):
    return F.cross_entropy(model(given).flatten(0, 1), wanted.flatten())


@pytest.mark.parametrize("rows", [ORDER[:12], ORDER[:9]])  # nine examples of nine places, too
def test_a_layer_that_believes_in_time_first_is_judged_by_where_the_drawn_rows_lie(rows):
    right, wrong = Tagger(batch_first=True), Tagger(batch_first=False)
    assert watched(right, lambda: tags(right, TABLE[rows], MARKS[rows]))[1] == []
    turned = watched(wrong, lambda: tags(wrong, TABLE[rows].transpose(0, 1), MARKS[rows].t()))
    assert turned[1] == []
    assert turned[0].influence[0].other_examples == 0.0
    deep, found = watched(wrong, lambda: tags(wrong, TABLE[rows], MARKS[rows]))
    assert deep.influence[0].other_examples > 0.1
    assert len(rows) == 9 or found == ["proven"]


def test_rows_in_order_leave_the_layer_its_belief():
    model = Tagger(batch_first=False)
    rows = torch.arange(12)
    deep, found = watched(model, lambda: tags(model, TABLE[rows], MARKS[rows]))
    assert found == [] and deep.influence[0].other_examples == 0.0


@pytest.mark.parametrize("turned", [True, False])
def test_numbers_for_every_place_are_judged_in_the_same_way(turned):
    model = Tagger(batch_first=False, classes=1)
    table, levels = TABLE.transpose(0, 1), TABLE.mean(-1).t()

    def loss():
        rows = ORDER[:12]
        if turned:
            return F.mse_loss(model(table[:, rows]).squeeze(-1), levels[:, rows])
        return F.mse_loss(model(TABLE[rows]).squeeze(-1), levels.t()[rows])

    assert watched(model, loss)[1] == ([] if turned else ["proven"])


def test_numbers_by_time_without_a_draw_are_no_leak():
    model = Tagger(batch_first=False, classes=1)
    table, levels = TABLE.transpose(0, 1), TABLE.mean(-1).t()
    found = watched(model, lambda: F.mse_loss(model(table[:, 4:16]).squeeze(-1), levels[:, 4:16]))[
        1
    ]
    assert found == []
