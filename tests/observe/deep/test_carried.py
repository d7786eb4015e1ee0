"""States that go on from one step to the next: of the same streams, or of other examples."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sawbones import faults
from sawbones.observe.deep import DeepObserver
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Ending, Run

ROWS, PLACES, WIDTH, BATCH = 90, 6, 5, 10
TABLE = torch.randn(ROWS, PLACES, 3, generator=torch.Generator().manual_seed(0))
LEVELS = TABLE[..., 0].cumsum(1)
ORDER = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))


def drawn(step):
    rows = ORDER[step * BATCH : (step + 1) * BATCH]
    return TABLE[rows], LEVELS[rows]


def found(batch, fresh, model=None, number=lambda step: step):
    """What the check says of two steps; `batch` gives inputs and targets of a step, `fresh` the
    state that a step begins with, of the one that was left.
    """
    torch.manual_seed(0)
    model = model or nn.GRU(3, WIDTH, batch_first=True)
    head = nn.Linear(WIDTH, 1)
    state, before, deep = torch.zeros(1, BATCH, WIDTH), None, []
    for step in range(2):
        observer = DeepObserver(
            step, 0, SiteFinder(), lambda: [model, head],
            drawn=lambda step=step: (number(step), getattr(batch, "loaded", [])), before=before,
        )  # fmt: skip
        observer.start()
        given, wanted = batch(step)
        out, state = model(given, fresh(state))
        loss = F.mse_loss(head(out).squeeze(-1), wanted)
        observer.before_backward(loss)
        loss.backward()
        deep.append(observer.stop())
        before = observer.left
        assert "errors" not in deep[-1].probes, deep[-1].probes["errors"]
    run = Run("train.py", (), "", {}, Ending("finished", 0), deep=tuple(deep))
    return [f.status for f in faults.read(run, "model.cross-sample-leak").findings]


def test_a_state_that_other_examples_left_is_found():
    assert found(drawn, lambda state: state.detach()) == ["likely"]


class ByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.given, self.kept = nn.Linear(3, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, given, state):
        outs, now = [], state[0]
        for place in range(given.shape[1]):
            now = torch.tanh(self.given(given[:, place]) + self.kept(now))
            outs.append(now)
        return torch.stack(outs, 1), now[None]


def test_so_is_one_of_a_recurrence_that_is_written_out():
    assert found(drawn, lambda state: state.detach(), ByHand()) == ["likely"]


@pytest.mark.parametrize(
    "fresh",
    [
        lambda state: None,
        lambda state: torch.zeros(1, BATCH, WIDTH),
        lambda state: state.detach() * 0,
        lambda state: torch.where(torch.ones(BATCH, 1) > 0, 0.0, state.detach()),
    ],
)
def test_a_state_that_begins_anew_is_not(fresh):
    assert (
        found(drawn, fresh, ByHand() if fresh(torch.ones(1, BATCH, WIDTH)) is not None else None)
        == []
    )


def test_streams_that_are_read_on_keep_their_state():
    starts = ORDER[:BATCH] % (ROWS - 2)

    def next_rows(step):
        return TABLE[starts + step], LEVELS[starts + step]

    def slices(step):
        return TABLE[:BATCH, 3 * step : 3 * step + 3], LEVELS[:BATCH, 3 * step : 3 * step + 3]

    whole = drawn(0)

    def pieces_of_a_drawn_batch(step):
        return tuple(one[:, 3 * step : 3 * step + 3] for one in whole)

    for batch in (next_rows, slices, pieces_of_a_drawn_batch):
        assert found(batch, lambda state: state.detach()) == []


def test_codes_that_are_looked_up_by_value_are_no_draw():
    codes = torch.eye(3)
    values = torch.randint(0, 3, (BATCH, 12), generator=torch.Generator().manual_seed(2))

    def read(step):
        part = values[:, 6 * step : 6 * step + 6]
        given = torch.stack([codes[part[:, place]] for place in range(6)], 1)
        return given, part.float()

    assert found(read, lambda state: state.detach()) == []


@pytest.mark.parametrize(("fetched", "count"), [(lambda step: step, 1), (lambda step: 0, 0)])
def test_a_batch_of_a_loader_counts_where_it_is_a_new_one(fetched, count):
    def load(step):
        load.loaded = (
            tuple(one.clone() for one in drawn(step)) if fetched(step) == step else load.loaded
        )
        return load.loaded

    assert len(found(load, lambda state: state.detach(), number=fetched)) == count
