"""A state that is cut between the steps of a sequence, and loops that cut one for good reasons."""

from __future__ import annotations

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import Tensor, nn
from torch.nn import functional

from sawbones.stats.cut_sequences import cut_sequences

TOKENS = torch.randint(0, 20, (8, 6), generator=torch.Generator().manual_seed(1))
NOTES = torch.randn(8, 6, 3, generator=torch.Generator().manual_seed(2))
ANSWERS = torch.arange(8) % 4


class ByHand(nn.Module):
    """An embedding, and a cell of two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 7)
        self.given, self.kept, self.out = nn.Linear(7, 9), nn.Linear(9, 9), nn.Linear(9, 4)

    def forward(self, every: int) -> Tensor:
        vectors = self.words(TOKENS)
        state = torch.zeros(8, 9)
        for place in range(TOKENS.shape[1]):
            if every and place % every == 0:
                state = state.detach()
            state = torch.tanh(self.given(vectors[:, place]) + self.kept(state))
        return self.out(state)


class Stepped(nn.Module):
    """A library layer that is given one step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 4)

    def forward(self, every: int) -> Tensor:
        state = torch.zeros(1, 8, 5)
        for place, note in enumerate(NOTES.split(1, dim=1)):
            if every and place % every == 0:
                state = state.data
            _, state = self.layer(note, state)
        return self.out(state[0])


@pytest.mark.parametrize("kind", [ByHand, Stepped])
def test_a_state_that_is_cut_at_every_step_leaves_all_inputs_but_the_last_unlearned(kind) -> None:
    model = kind()
    deep = observe(model, lambda: functional.cross_entropy(model(1), ANSWERS))
    found = next(cut_sequences(deep))
    assert (found.num_calls, found.num_inputs) == (6, 5)


@pytest.mark.parametrize("kind", [ByHand, Stepped])
@pytest.mark.parametrize("every", [0, 2, 3])
def test_a_state_that_is_kept_or_truncated_is_left_alone(kind, every) -> None:
    model = kind()
    deep = observe(model, lambda: functional.cross_entropy(model(every), ANSWERS))
    assert not list(cut_sequences(deep))


def loss_of_every_step(layer: nn.Module, out: nn.Module) -> Tensor:
    state, total = torch.zeros(8, 5), torch.zeros(())
    for note in NOTES.unbind(1):
        state = layer(note, state.detach())
        total = total + functional.cross_entropy(out(state), ANSWERS)
    return total


def fixed_point(layer: nn.Module, out: nn.Module) -> Tensor:
    state = torch.zeros(8, 5)
    for _ in range(6):
        state = layer(NOTES.mean(1), state.detach())
    return functional.cross_entropy(out(state), ANSWERS)


def warmed_up(layer: nn.Module, out: nn.Module) -> Tensor:
    state = torch.zeros(8, 5)
    for place, note in enumerate(NOTES.unbind(1)):
        with torch.set_grad_enabled(place > 3):
            state = layer(note, state)
    return functional.cross_entropy(out(state), ANSWERS)


@pytest.mark.parametrize("loss", [loss_of_every_step, fixed_point, warmed_up])
def test_loops_that_cut_their_state_for_a_reason_are_left_alone(loss) -> None:
    layer, out = nn.GRUCell(3, 5), nn.Linear(5, 4)
    deep = observe([layer, out], lambda: loss(layer, out))
    assert not list(cut_sequences(deep))
