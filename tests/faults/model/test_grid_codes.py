"""Two tables of codes for a square grid: along one axis each, or both along the same one."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones.faults import read
from sawbones.schema import Ending, Run

EXAMPLES, SIDE, WIDTH = 6, 4, 8
TILES = torch.randint(0, 9, (EXAMPLES, SIDE, SIDE), generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(EXAMPLES) % 3


class Board(nn.Module):
    def __init__(self, lay):
        super().__init__()
        self.lay = lay
        self.tiles = nn.Embedding(9, WIDTH)
        self.down, self.across = nn.Embedding(SIDE, WIDTH), nn.Embedding(SIDE, WIDTH)
        self.rows = nn.Parameter(torch.randn(SIDE, 1, WIDTH))
        self.columns = nn.Parameter(torch.randn(1, SIDE, WIDTH))
        self.halves = nn.ParameterList([torch.randn(SIDE, WIDTH // 2) for _ in range(2)])
        self.squares = nn.Parameter(torch.randn(SIDE * SIDE, WIDTH))
        self.register_buffer("waves", torch.sin(torch.arange(SIDE * WIDTH).view(SIDE, 1, WIDTH)))
        self.attend = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, tiles):
        return self.head(self.attend(self.lay(self, self.tiles(tiles))).mean(1))


def said(lay):
    torch.manual_seed(0)
    model = Board(lay)
    deep = observe(model, lambda: F.cross_entropy(model(TILES), LABELS))
    run = Run("train.py", (), "", {}, Ending("finished"), deep=(deep,))
    found = read(run, "model.*").findings
    return {f.fault: f.status for f in found if "position" in f.fault}


def counted(model):
    places = torch.arange(SIDE)
    return model.down(places), model.across(places)


def looked_up(model, x, wrong):
    down, across = counted(model)
    x = x + down.unsqueeze(1) + (across.unsqueeze(1) if wrong else across)
    return x.flatten(1, 2)


def one_code_for_the_grid(model, x, wrong):
    own = model.columns.transpose(0, 1) if wrong else model.columns
    codes = model.rows.expand(-1, SIDE, -1) + own.expand(SIDE, SIDE, -1)
    return x.reshape(len(x), -1, WIDTH) + codes.reshape(1, -1, WIDTH)


def beside_each_other(model, x, wrong):
    first, second = model.halves
    down = first[:, None].repeat(1, SIDE, 1)
    across = second[:, None].repeat(1, SIDE, 1) if wrong else second[None].repeat(SIDE, 1, 1)
    return (x + torch.cat([down, across], dim=-1)).view(len(x), SIDE * SIDE, WIDTH)


def channels_first(model, x, wrong):
    x = x.permute(0, 3, 1, 2)
    down, across = counted(model)
    x = x + down.t()[None, :, :, None]
    x = x + (across.t()[:, :, None] if wrong else across.t()[:, None, :])
    return x.flatten(2).transpose(1, 2)


LAYING = [looked_up, one_code_for_the_grid, beside_each_other]


@pytest.mark.parametrize("lay", LAYING)
def test_two_tables_along_one_axis_are_proven(lay):
    found = said(lambda model, x: lay(model, x, wrong=True))
    assert found == {"model.position-broadcast": "proven"}


@pytest.mark.parametrize("lay", [*LAYING, channels_first])
def test_a_table_for_each_axis_is_right(lay):
    assert said(lambda model, x: lay(model, x, wrong=False)) == {}


def one_axis_has_no_order(model, x):
    return (x + model.rows).flatten(1, 2)


def fixed_and_learned(model, x):
    return (x + model.rows + model.waves).flatten(1, 2)


def scaled_and_moved(model, x):
    return (x * model.rows + model.columns.transpose(0, 1)).flatten(1, 2)


def every_square_has_its_own(model, x):
    x = x + model.rows + model.columns.transpose(0, 1)
    return x.flatten(1, 2) + model.squares


def the_third_tells_the_other(model, x):
    x = x + model.rows + model.columns.transpose(0, 1) + model.across(torch.arange(SIDE))
    return x.flatten(1, 2)


@pytest.mark.parametrize(
    "lay",
    [
        one_axis_has_no_order,
        fixed_and_learned,
        scaled_and_moved,
        every_square_has_its_own,
        the_third_tells_the_other,
    ],
)
def test_two_tables_along_one_axis_may_be_meant(lay):
    assert "model.position-broadcast" not in said(lay)
