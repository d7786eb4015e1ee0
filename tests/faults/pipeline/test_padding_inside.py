"""A loss that leaves out its padding id inside of texts, and losses that leave out others."""

from __future__ import annotations

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import Tensor, nn
from torch.nn import functional

from sawbones.faults.pipeline.special_tokens.check import check
from sawbones.schema import Ending, Run

LETTERS = torch.randint(0, 5, (12, 9), generator=torch.Generator().manual_seed(4))


class Speller(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(8, 6, padding_idx=0)
        self.layer, self.out = nn.GRU(6, 10, batch_first=True), nn.Linear(10, 8)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.layer(self.letters(ids))[0])


def seen(ids: Tensor, targets: Tensor, **options: int) -> Run:
    model = Speller()

    def loss() -> Tensor:
        return functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), **options)

    return Run("train.py", (), "", {}, Ending("finished"), deep=(observe(model, loss),))


def share(run: Run) -> float | None:
    return run.deep[0].losses[0].facts.left_out_inside


def test_a_letter_with_the_id_of_padding_is_left_out_of_the_loss() -> None:
    run = seen(LETTERS[:, :-1], LETTERS[:, 1:], ignore_index=0)
    (found,) = check(run)
    assert found.status == "proven" and "share the id 0" in found.title


def joined() -> Tensor:
    """Question and answer, each padded by itself."""
    ids = LETTERS + 1
    for row in range(len(ids)):
        ids[row, 2 + row % 2 : 6] = 0
    return ids


@pytest.mark.parametrize("ids", [LETTERS + 1, joined()])
def test_padding_that_is_nothing_else_is_no_letter(ids: Tensor) -> None:
    assert not share(seen(ids[:, :-1], ids[:, 1:], ignore_index=0))


def test_targets_that_are_masked_while_the_input_goes_on_are_left_out_on_purpose() -> None:
    ids = LETTERS + 1
    targets = ids[:, 1:].clone()
    targets[:, 3] = 0
    assert share(seen(ids[:, :-1], targets, ignore_index=0)) == 0
    assert share(seen(LETTERS[:, :-1], LETTERS[:, 1:])) is None
