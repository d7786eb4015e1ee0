"""Influence, attention, padding, layout and shift, read off models in several styles."""

import pytest
import torch
from tests.observe.deep import models
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F


def _next_token(model, ids=None, probe=False):
    ids = models.tokens() if ids is None else ids
    return observe(
        model, lambda: F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:]), probe
    )


def test_a_causal_model_has_no_influence_from_the_future():
    record = _next_token(models.SdpaGPT(), probe=True)
    (found,) = record.influence
    assert (
        found.future == 0.0
        and found.past > 0.05
        and found.self > 0.05
        and found.other_examples == 0.0
    )
    assert found.probes == 6 and found.dependent == 6
    assert all(a.kind == "sdpa" and a.future_mass == 0.0 for a in record.attention)
    assert record.probes["causality"]["before"] == 0.0 and record.probes["batch"]["others"] == 0.0
    assert record.losses[0].facts.target_visible == 0.0


def test_a_model_without_a_mask_shows_its_future_and_its_target():
    record = _next_token(models.SdpaGPT(causal=False), probe=True)
    assert record.influence[0].future > 0.05
    assert record.attention[0].future_mass > 0.3
    assert record.probes["causality"]["before"] > 1e-3
    assert record.losses[0].facts.target_visible > 0.005


@pytest.mark.parametrize(("diagonal", "leaks"), [(0, False), (1, True)])
def test_a_wrong_diagonal_shows_in_masked_softmax_attention(diagonal, leaks):
    ids = models.tokens()
    model = models.SoftmaxGPT(diagonal=diagonal)
    record = observe(model, lambda: model(ids[:, :-1], ids[:, 1:])[1])
    (attention,) = record.attention
    assert attention.kind == "softmax" and attention.heads == 2 and attention.head_dim == 16
    assert (attention.future_mass > 0.01) is leaks
    assert (record.influence[0].by_offset[1] > 1e-4) is leaks
    assert record.influence[0].by_offset[2] < 1e-4 or leaks
    assert attention.mask["triangle"] == "lower" and attention.mask["diagonal"] == diagonal


def test_softmax_over_the_wrong_axis_and_a_missing_scale_show():
    ids = models.tokens()
    good, wrong, raw = (
        models.SoftmaxGPT(),
        models.SoftmaxGPT(axis=-2),
        models.SoftmaxGPT(scale=False),
    )
    seen = [
        observe(m, lambda m=m: m(ids[:, :-1], ids[:, 1:])[1]).attention[0]
        for m in (good, wrong, raw)
    ]
    assert [a.mask["axis_is_keys"] for a in seen] == [True, False, True]
    assert seen[0].score_std == pytest.approx(seen[0].expected_score_std, rel=1e-3)
    assert seen[2].score_std == pytest.approx(4 * seen[2].expected_score_std, rel=1e-3)


class _PreScaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj, self.head = (
            nn.Embedding(29, 16),
            nn.Linear(16, 32),
            nn.Linear(16, 29),
        )

    def forward(self, ids):
        x = self.embed(ids)
        q, k = self.proj(x).split(16, -1)
        weights = torch.einsum("bqd,bkd->bqk", q * 16**-0.5, k).softmax(-1)
        return self.head(torch.einsum("bqk,bkd->bqd", weights, x))


def test_queries_scaled_before_an_einsum_count_as_scaled():
    (attention,) = _next_token(_PreScaled()).attention
    assert attention.score_std == pytest.approx(attention.expected_score_std, rel=1e-3)


class _ScaledAfterTheMask(_PreScaled):
    def __init__(self, scale, in_place):
        super().__init__()
        self.scale, self.in_place = scale, in_place

    def forward(self, ids):
        x = self.embed(ids)
        q, k = self.proj(x).split(16, -1)
        scores = torch.einsum("bqd,bkd->bqk", q, k)
        hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        if self.in_place:
            scores.masked_fill_(hidden, -1e20)
        else:
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = torch.softmax(scores * self.scale, dim=2)
        return self.head(torch.einsum("bqk,bkd->bqd", weights, x))


@pytest.mark.parametrize("in_place", [True, False])
def test_scores_that_are_divided_after_the_mask_count_as_scaled(in_place):
    for scale, ratio in ((16**-0.5, 1), (1.0, 4)):
        (attention,) = _next_token(_ScaledAfterTheMask(scale, in_place)).attention
        assert attention.score_std == pytest.approx(ratio * attention.expected_score_std, rel=1e-3)


def test_padding_its_side_and_its_weight_in_an_encoder():
    ids, labels = models.padded(), torch.tensor([0, 1, 2, 0])
    records = []
    for masked in (True, False):
        model = models.Classifier(masked=masked)
        records.append(
            observe(model, lambda model=model: F.cross_entropy(model(ids), labels), probe=True)
        )
    good, bad = records
    (tokens,) = good.tokens
    assert (tokens.role, tokens.pad_id, tokens.pad_side, tokens.lengths) == (
        "tokens",
        0,
        "right",
        (12, 10, 8, 6),
    )
    assert good.influence[0].padding == 0.0 and bad.influence[0].padding > 0.1
    assert (
        all(a.kind == "mha" and a.pad_mass == 0.0 for a in good.attention)
        and bad.attention[0].pad_mass > 0.1
    )
    assert good.probes["padding"]["real"] < 1e-4 < bad.probes["padding"]["real"]


def test_an_inverted_padding_mask_is_seen_in_use():
    ids, labels = models.padded(), torch.tensor([0, 1, 2, 0])
    model = models.Classifier(inverted=True)
    record = observe(model, lambda: F.cross_entropy(model(ids), labels))
    assert record.attention[0].pad_mass > 0.5 and record.attention[0].masked_rows > 0
    mask = next(m for m in record.masks if m["dtype"] == "bool")
    assert mask["equal_nonpad"] == 1.0 and mask["uses"][0]["true_means"] == "drop"


def test_time_first_layout_and_one_influence_per_token_input():
    src, tgt = models.padded(5, 10, 19).t(), models.tokens(5, 9, 19, seed=1).t()
    model = models.Translator()
    record = observe(
        model, lambda: F.cross_entropy(model(src, tgt[:-1]).reshape(-1, 19), tgt[1:].reshape(-1))
    )
    encoder, decoder = record.influence
    assert (decoder.batch_dim, decoder.time_dim, decoder.future) == (1, 0, 0.0) and decoder.past > 0
    assert encoder.future is None and encoder.other_examples == 0.0 and encoder.padding > 0.05
    assert record.tokens[0].lengths == (10, 8, 6, 4, 2) and record.tokens[0].time_dim == 0
    assert record.losses[0].facts.sequence_dim == 0 and record.losses[0].facts.copied_at == 1


def test_batch_and_time_swapped_shows_as_other_examples():
    ids = models.tokens()
    layer = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0), 1, enable_nested_tensor=False
    )
    model = nn.Sequential(nn.Embedding(29, 16), layer, nn.Linear(16, 29))
    record = _next_token(model, ids)
    (found,) = record.influence
    assert (found.batch_dim, found.time_dim) == (0, 1)
    assert found.other_examples > 0.05 and found.future == 0.0


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_the_shift_of_the_targets_against_the_inputs(shift):
    ids = models.tokens(length=14)
    model = models.SdpaGPT()
    inputs = ids[:, : 14 - shift]
    record = observe(
        model, lambda: F.cross_entropy(model(inputs).flatten(0, 1), ids[:, shift:].flatten())
    )
    facts = record.losses[0].facts
    assert facts.copied_at == shift and facts.shift[shift]["copies"] == 1.0
    assert max(v["copies"] for k, v in facts.shift.items() if k != shift) < 0.3
    assert facts.shift[0]["loss"] == pytest.approx(record.losses[0].value, rel=1e-4)
    assert (facts.target_visible > 0.3) is (shift == 0)


def test_shifting_inside_of_the_loss_as_hugging_face_does():
    ids = models.tokens()
    model = models.SdpaGPT()

    def loss():
        logits = model(ids)
        return F.cross_entropy(
            logits[..., :-1, :].contiguous().view(-1, 29), ids[..., 1:].contiguous().view(-1)
        )

    record = observe(model, loss)
    assert record.losses[0].facts.copied_at == 1 and record.influence[0].future == 0.0


def test_random_tokens_have_no_padding_and_left_padding_is_told():
    assert _next_token(models.SdpaGPT()).tokens[0].pad_id is None
    ids = models.padded(6, 12, 29).flip(1)
    record = _next_token(models.SdpaGPT(), ids)
    assert record.tokens[0].pad_id == 0 and record.tokens[0].pad_side == "left"
    assert record.losses[0].facts.target_pad_share > 0.2
    assert record.tokens[1].role == "positions"


def test_without_positions_a_permuted_input_gives_a_permuted_output():
    ids = models.tokens()
    for positions in (True, False):
        model = models.SdpaGPT(causal=False, positions=positions)
        record = observe(
            model, lambda model=model: F.cross_entropy(model(ids).transpose(1, 2), ids), probe=True
        )
        assert (record.probes["permutation"]["distance"] < 1e-4) is (not positions)


def test_a_hand_written_loss_over_a_flattened_recurrent_model():
    ids = models.tokens(3, 9, 17)
    model = models.Tagger()

    def loss():
        logs = F.log_softmax(model(ids[:, :-1]), -1)
        goal = ids[:, 1:].reshape(-1)
        return -logs[torch.arange(len(goal)), goal].mean()

    record = observe(model, loss)
    (found,) = record.losses
    assert (
        found.facts.by_hand
        and found.facts.effective_reduction == "mean"
        and found.facts.copied_at == 1
    )
    assert record.influence[0].future == 0.0 and record.influence[0].past > 0.1


def test_a_start_token_with_the_id_of_the_padding_is_not_padding():
    ids = models.padded(5, 12, 29)
    ids[:, 0] = 0
    record = _next_token(models.SdpaGPT(), ids)
    assert record.tokens[0].pad_side == "right" and record.tokens[0].lengths == (11, 10, 8, 6, 4)
    assert record.influence[0].padding == 0.0


def test_the_start_column_of_a_decoder_is_not_padding_and_the_decoder_is_what_is_probed():
    src, tgt = models.padded(8, 9, 19), models.padded(8, 9, 19, seed=1)[torch.randperm(8)]
    tgt = torch.cat([torch.full((8, 1), 18), tgt], 1)
    model = models.Translator()
    record = observe(
        model,
        lambda: F.cross_entropy(
            model(src.t(), tgt[:, :-1].t()).transpose(0, 1).flatten(0, 1), tgt[:, 1:].flatten()
        ),
        True,
    )
    assert [t.pad_id for t in record.tokens] == [0, 0] and [t.time_dim for t in record.tokens] == [
        0,
        0,
    ]
    assert record.probes["source"] == 1 and record.probes["causality"]["before"] == 0.0


class _Packed(models.SdpaGPT):
    def forward(self, ids, places):
        return self.head(self.tok(ids) + self.pos(places))


def test_positions_that_start_over_are_positions_and_counted_up_data_is_not():
    ids, model = models.tokens(), _Packed()
    places = torch.tensor([0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3]).expand(4, 11).contiguous()
    places[0, 4:] = torch.arange(4, 11)
    record = observe(
        model,
        lambda: F.cross_entropy(model(ids[:, :-1], places).flatten(0, 1), ids[:, 1:].flatten()),
    )
    assert [t.role for t in record.tokens] == ["tokens", "positions"]
    model = models.SdpaGPT()
    record = observe(
        model, lambda: F.cross_entropy(model(ids.cumsum(1) % 29).flatten(0, 1), ids.flatten())
    )
    assert record.tokens[0].role == "tokens"
