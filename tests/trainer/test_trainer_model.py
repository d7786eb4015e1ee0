"""Masks, positions, attention, the two architectures and decoding."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from sawbones.trainer.collation import Encoded, collate
from sawbones.trainer.config import ARCHS, POSITIONS, ModelConfig
from sawbones.trainer.decoding import greedy_decode
from sawbones.trainer.errors import ConfigError, PositionOutOfRange
from sawbones.trainer.masks import as_scores, causal_mask, compose, padding_mask
from sawbones.trainer.model import Transformer
from sawbones.trainer.positions import RotaryPositions, rotate, sinusoidal_table
from sawbones.trainer.tokenization import BOS_ID, EOS_ID, PAD_ID
from sawbones.trainer.verification import cache_difference, causality_difference, padding_difference


def build(arch="encoder-decoder", positions="sinusoidal", **more):
    torch.manual_seed(0)
    config = ModelConfig(
        arch=arch,
        positions=positions,
        vocab_size=20,
        d_model=16,
        num_heads=2,
        num_layers=2,
        d_ff=32,
        max_positions=48,
    )
    return Transformer(replace(config, **more)).eval()


def batch_of(*lengths, with_source=True):
    generator = torch.Generator().manual_seed(1)

    def row(n):
        return tuple(torch.randint(4, 20, (n,), generator=generator).tolist())

    return collate([Encoded(row(n) if with_source else None, row(n + 1)) for n in lengths])


def test_masks_mean_may_attend():
    mask = compose(padding_mask(torch.tensor([[True, True, False]])), causal_mask(3, 3))
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert bool(mask.any(-1).all()), "no row is fully masked"
    assert causal_mask(1, 4).tolist() == [[[[True] * 4]]], "a new column sees every cached one"
    assert as_scores(mask, torch.float32)[0, 0, 0].tolist() == [0.0, -math.inf, -math.inf]


def test_sinusoidal_codes_follow_the_formula():
    table = sinusoidal_table(50, 12)
    for position, i in ((0, 0), (7, 2), (49, 5)):
        angle = position / 10_000 ** (2 * i / 12)
        assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
        assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_rotary_scores_depend_on_distance_alone():
    rotary, (q, k) = (
        RotaryPositions(40, 8).double(),
        torch.randn(2, 1, 1, 1, 8, dtype=torch.float64),
    )

    def score(i, j):
        return (
            rotate(q, rotary(torch.tensor([[i]]))) * rotate(k, rotary(torch.tensor([[j]])))
        ).sum()

    assert torch.allclose(score(3, 1), score(33, 31), atol=1e-6)
    assert not torch.allclose(score(3, 1), score(3, 2), atol=1e-3)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("arch", ARCHS)
def test_cached_decoding_equals_the_full_forward(arch, positions):
    batch = batch_of(3, 9, 6)
    assert cache_difference(build(arch, positions), batch) < 1e-5


@pytest.mark.parametrize("positions", POSITIONS)
def test_cached_decoding_equals_the_full_forward_without_a_source(positions):
    assert (
        cache_difference(build("decoder-only", positions), batch_of(3, 9, 6, with_source=False))
        < 1e-5
    )


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("arch", ARCHS)
def test_no_column_sees_the_future_and_padding_changes_nothing(arch, positions):
    model, batch = build(arch, positions).double(), batch_of(3, 9, 6)
    assert causality_difference(model, batch) < 1e-12
    assert padding_difference(model, batch) < 1e-12


@pytest.mark.parametrize("arch", ARCHS)
def test_examples_do_not_influence_each_other(arch):
    model, batch = build(arch).double(), batch_of(3, 9, 6)
    alone = collate(
        [Encoded(tuple(batch.source_BS[0, :3].tolist()), tuple(batch.labels_BT[0, :4].tolist()))]
    )

    def logits(b):
        return model(b.source_BS, b.source_mask_BS, b.decoder_input_BT, b.decoder_mask_BT)

    assert torch.allclose(logits(batch)[0, :5], logits(alone)[0, :5], atol=1e-10)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("arch", ARCHS)
def test_order_matters_to_the_model(arch, positions):
    model = build(arch, positions)
    one, two = collate([Encoded((5, 6, 7), (8,))]), collate([Encoded((7, 6, 5), (8,))])
    out = [
        model(b.source_BS, b.source_mask_BS, b.decoder_input_BT, b.decoder_mask_BT)[0, 0]
        for b in (one, two)
    ]
    assert (out[0] - out[1]).abs().max() > 1e-4


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_sequence_past_the_table_is_refused(positions):
    model = build(positions=positions, max_positions=8)
    with pytest.raises(PositionOutOfRange, match="16 positions does not fit the table of 8"):
        batch = batch_of(12)
        model(batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT)


def test_generation_past_the_table_is_refused():
    model = build(max_positions=8)
    model.head.weight.data.zero_()  # always PAD, never EOS
    batch = batch_of(3)
    with pytest.raises(PositionOutOfRange, match="9 positions"):
        greedy_decode(model, batch.source_BS, batch.source_mask_BS, 20)


def test_the_first_loss_is_that_of_guessing():
    model, batch = build(), batch_of(5, 8, 12)
    logits = model(
        batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
    )
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels_BT.flatten())
    assert loss.item() == pytest.approx(math.log(20), abs=0.1)


@pytest.mark.parametrize("arch", ARCHS)
def test_greedy_decoding_follows_the_argmax_of_the_full_forward(arch):
    model, batch = build(arch), batch_of(3, 9)
    new = greedy_decode(model, batch.source_BS, batch.source_mask_BS, 6)
    tokens = torch.full((2, 1), BOS_ID)
    for column in new.T:
        logits = model(
            batch.source_BS, batch.source_mask_BS, tokens, torch.ones_like(tokens, dtype=torch.bool)
        )
        expected = logits[:, -1].argmax(-1)
        done = (tokens == EOS_ID).any(1)
        assert torch.equal(column, expected.masked_fill(done, PAD_ID))
        tokens = torch.cat((tokens, column[:, None]), dim=1)


def test_softmax_is_float32_under_autocast(monkeypatch):
    seen, original = [], torch.softmax

    def watched(x, dim):
        seen.append(x.dtype)
        return original(x, dim=dim)

    monkeypatch.setattr(torch, "softmax", watched)
    batch = batch_of(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        build()(
            batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
        )
    assert seen and set(seen) == {torch.float32}


def test_an_encoder_without_source_is_refused():
    batch = batch_of(4, with_source=False)
    with pytest.raises(ConfigError, match="needs a source"):
        build()(None, None, batch.decoder_input_BT, batch.decoder_mask_BT)
