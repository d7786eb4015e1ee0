"""One batch that every rank answers: the host stays as it was, and a layer that is off is named."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn

from sawbones.observe.rank_channel import Comparison, Note, differences
from sawbones.observe.shared_batch import SharedBatch
from sawbones.observe.tensor_prints import Prints


def _asked(model: nn.Module, *args: Tensor) -> tuple[list[str], Prints] | None:
    census = SimpleNamespace(trainable=list, roots=list, optimizers=list)
    recorder: Any = SimpleNamespace(last_call=(model, args, {}), depth=0, census=census)
    shared = SharedBatch(recorder)
    batch = shared.called()
    found = shared.ask(batch)
    assert shared.is_open is False
    return None if found is None else (found[0], found[1].read())


class Off(nn.Linear):
    def forward(self, values: Tensor) -> Tensor:
        return 1.01 * super().forward(values)


def _model(last: type[nn.Linear] = nn.Linear) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), last(8, 8), nn.ReLU(), nn.Linear(8, 2)
    )


def test_the_first_layer_whose_answer_differs_is_named() -> None:
    batch = torch.randn(16, 6)
    ours, theirs = _asked(_model(), batch), _asked(_model(Off), batch)
    assert ours is not None and theirs is not None and ours[0] == theirs[0]
    assert ours[0][0] == "(given) batch"
    rows = differences(ours[0], ours[1], theirs[1], in_order=True)
    assert [row["name"] for row in rows] == ["3", "4", "5", ""]


def test_models_with_the_same_weights_answer_with_the_same_bits_wherever_their_streams_stand() -> (
    None
):
    batch = torch.randn(16, 6)
    ours = _asked(_model(), batch)
    torch.manual_seed(99)
    theirs = _asked(_model(), batch)
    assert ours is not None and theirs is not None
    assert ours[1].folded() == theirs[1].folded()


def test_the_model_its_buffers_and_the_random_streams_stay_as_they_were() -> None:
    model, batch = _model(), torch.randn(16, 6)
    packed = io.BytesIO()
    torch.save(model.state_dict(), packed)
    state = torch.get_rng_state()
    assert _asked(model, batch) is not None
    after = io.BytesIO()
    torch.save(model.state_dict(), after)
    assert torch.equal(state, torch.get_rng_state()) and model.training
    assert packed.getvalue() == after.getvalue()


class Noisy(nn.Module):
    """Draws from something that is no random stream of torch, Python or NumPy."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, values: Tensor) -> Tensor:
        calls.append(1)
        scores: Tensor = self.layer(values) + len(calls)
        return scores


calls: list[int] = []


def test_a_model_that_answers_otherwise_the_second_time_is_not_asked() -> None:
    assert _asked(Noisy(), torch.randn(4, 6)) is None


class Talking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, values: Tensor) -> Tensor:
        scores: Tensor = self.layer(values)
        distributed.all_reduce(scores)
        return scores


@pytest.fixture
def alone() -> Any:
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def test_a_model_that_communicates_is_left_before_it_does(alone: Any) -> None:
    assert _asked(Talking(), torch.randn(4, 6)) is None


@pytest.mark.parametrize("weights, said", [(1, {"answers": 3}), (2, {"parameters": 3})])
def test_answers_are_compared_where_the_weights_are_the_same(
    weights: int, said: dict[str, int]
) -> None:
    known = Comparison()
    ours = Note(3, 1, {"parameters": 1, "answers": 5})
    known.add(ours, Note(3, 1, {"parameters": weights, "answers": 6}))
    assert known.apart == said and known.asked == (weights == 1)
