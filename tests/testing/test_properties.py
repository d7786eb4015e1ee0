"""What an output may depend on, on small models that do it right or wrong."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from sawbones.testing import (
    assert_batch_independent,
    assert_causal,
    assert_padding_invariant,
    assert_positions_matter,
)


class Attending(nn.Module):
    def __init__(self, causal: bool = True, positions: bool = True, masked: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.causal, self.masked = causal, masked
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(9, 16) if positions else None
        self.mix, self.head = nn.Linear(16, 48), nn.Linear(16, 11)
        self.drop = nn.Dropout(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        if self.places is not None:
            x = x + self.places(torch.arange(ids.shape[1]))
        q, k, v = self.mix(self.drop(x)).chunk(3, -1)
        mask = (ids != 0)[:, None, :].expand(-1, ids.shape[1], -1) if self.masked else None
        return self.head(
            nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=self.causal
            )
        )


class MixedUp(nn.Module):
    """Reads (time, batch) where (batch, time) is given."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.layer, self.head = nn.Embedding(11, 16), nn.GRU(16, 16), nn.Linear(16, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layer(self.tokens(ids))[0])


def _ids() -> Tensor:
    return torch.randint(1, 11, (4, 8), generator=torch.Generator().manual_seed(1))


def test_a_causal_model_passes_and_keeps_its_mode_and_its_random_stream() -> None:
    model = Attending().train()
    before = torch.get_rng_state()
    assert_causal(model, _ids())
    assert model.training and torch.equal(before, torch.get_rng_state())


def test_a_leak_is_named_with_example_position_and_size() -> None:
    with pytest.raises(
        AssertionError,
        match=(
            r"example \d, position 0 moves by \d.*when only inputs from position 1 on change; "
            r"expected 0"
        ),
    ):
        assert_causal(Attending(causal=False), _ids())


def test_a_leak_of_one_position_is_found_at_every_cut() -> None:
    class PeeksOne(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)

    with pytest.raises(AssertionError, match="position 0 moves"):
        assert_causal(PeeksOne(), torch.randn(2, 6, 3))


def test_batches_are_handed_over_as_dicts_and_tuples_and_by_a_function() -> None:
    model, ids = Attending(), _ids()
    assert_causal(model, {"ids": ids})
    assert_causal(model, (ids,))
    assert_causal(
        model, {"x": ids, "y": ids}, forward=lambda m, batch: {"scores": m(batch["x"])}, source="x"
    )


def test_outputs_without_positions_are_refused() -> None:
    with pytest.raises(TypeError, match=r"outputs \(4, 11\) are not \(batch, time"):
        assert_causal(Attending(), _ids(), forward=lambda m, ids: m(ids).mean(1))


def test_examples_that_mix_are_named() -> None:
    assert_batch_independent(Attending(), _ids())
    with pytest.raises(
        AssertionError, match=r"example \d moves by .* when only example 0 changes; expected 0"
    ):
        assert_batch_independent(MixedUp(), _ids())


def test_batch_statistics_do_not_count_in_evaluation_mode() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    assert_batch_independent(model, torch.randn(6, 4))
    assert model.training


def test_one_example_is_not_enough_to_tell() -> None:
    with pytest.raises(ValueError, match="at least 2 examples"):
        assert_batch_independent(Attending(), _ids()[:1])


def test_padding_that_is_seen_is_named() -> None:
    ids = _ids()
    ids[0, 5:] = 0
    ids[2, 3:] = 0
    assert_padding_invariant(Attending(causal=False, masked=True), ids)
    with pytest.raises(
        AssertionError,
        match=(
            r"example [02], position \d moves by .* when the [35] padded positions of its row "
            r"are cut off"
        ),
    ):
        assert_padding_invariant(Attending(causal=False), ids)
    with pytest.raises(ValueError, match="no row of the input"):
        assert_padding_invariant(Attending(), _ids())


def test_order_that_does_not_matter_is_named() -> None:
    assert_positions_matter(Attending(causal=False), _ids())
    with pytest.raises(AssertionError, match="turning the 8 positions round"):
        assert_positions_matter(Attending(causal=False, positions=False), _ids())


def test_a_model_that_answers_differently_each_time_is_refused() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    with pytest.raises(
        ValueError, match=r"two calls with one input differ by .* in evaluation mode"
    ):
        assert_batch_independent(Counting(), torch.ones(3, 2))
