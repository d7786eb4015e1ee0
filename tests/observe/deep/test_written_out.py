"""Attention, tables and padding in forms that no library call names."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones import faults
from sawbones.schema import Ending, Run

WAYS = {
    "log_sum_exp": lambda s: torch.exp(s - torch.logsumexp(s, dim=-1, keepdim=True)),
    "division": lambda s: (e := torch.exp(s - s.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True),
    "log_softmax": lambda s: s.log_softmax(-1).exp(),
    "over_queries": lambda s: (e := s.exp()) / e.sum(1, keepdim=True),
}


class _Reader(nn.Module):
    def __init__(self, soft):
        super().__init__()
        self.table = nn.Parameter(torch.randn(20, 16))
        self.q, self.k, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 3)
        self.soft = soft

    def forward(self, ids):
        x = self.table[ids]
        weights = self.soft(self.q(x) @ self.k(x).transpose(1, 2) / 4.0)
        return self.head((weights @ x).mean(1))


def _read(soft):
    torch.manual_seed(0)
    model, ids = _Reader(soft), torch.randint(0, 20, (6, 9))
    return observe(model, lambda: F.cross_entropy(model(ids), torch.arange(6) % 3))


@pytest.mark.parametrize("way", ["log_sum_exp", "division", "log_softmax"])
def test_a_softmax_that_is_written_out_is_the_same_attention(way):
    (plain,), (spelled,) = _read(lambda s: s.softmax(-1)).attention, _read(WAYS[way]).attention
    assert spelled.mask["axis_is_keys"] and spelled.keys == 9
    for name in ("entropy", "self_mass", "score_std", "expected_score_std"):
        assert getattr(spelled, name) == pytest.approx(getattr(plain, name), rel=1e-4)


def test_the_dimension_of_a_written_out_softmax_is_read_off_its_sums():
    (attention,) = _read(WAYS["over_queries"]).attention
    assert attention.mask["axis_is_keys"] is False


def test_rows_of_a_parameter_are_token_vectors():
    (token,) = _read(lambda s: s.softmax(-1)).tokens
    assert token.role == "tokens" and token.shape == (6, 9) and token.num_embeddings == 20


def test_rows_in_order_of_their_length_do_not_turn_time_around():
    ids = torch.randint(0, 4, (8, 11))
    ids[:6, -1] = 4  # six rows are one token shorter than the last two
    embed, head = nn.Embedding(5, 8, padding_idx=4), nn.Linear(8, 2)
    record = observe(
        [embed, head], lambda: F.cross_entropy(head(embed(ids)).flatten(0, 1), torch.arange(88) % 2)
    )
    assert record.tokens[0].time_dim == 1 and record.tokens[0].lengths == (10,) * 6 + (11,) * 2


def test_blank_frames_are_found_with_time_in_front():
    lengths = torch.tensor([9, 5, 7, 6])
    real = torch.arange(10)[None] < lengths[:, None]
    frames = torch.randn(10, 4, 3) * real.t()[..., None]
    lift, attention, head = nn.Linear(3, 8), nn.MultiheadAttention(8, 2), nn.Linear(8, 2)

    def loss():
        x = lift(frames)
        return F.cross_entropy(
            head(attention(x, x, x, key_padding_mask=real)[0].mean(0)), torch.tensor([0, 1, 0, 1])
        )

    record = observe([lift, attention, head], loss)
    assert any(mask.get("equal_filled") == 1.0 for mask in record.masks if mask["dtype"] == "bool")


class _Placed(nn.Module):
    def __init__(self, keeps):
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 16), nn.Linear(16, 3)
        self.register_buffer("codes", torch.randn(9, 16))
        self.keeps = keeps

    def forward(self, ids):
        x = self.embed(ids)
        placed = x.add(self.codes)
        x = placed if self.keeps else x
        return self.head(F.scaled_dot_product_attention(x, x, x).mean(1))


@pytest.mark.parametrize("keeps", [True, False])
def test_codes_that_are_added_and_lost_are_positions_missing(keeps):
    model, ids = _Placed(keeps), torch.randint(0, 20, (6, 9))
    record = observe(model, lambda: F.cross_entropy(model(ids), torch.arange(6) % 3))
    run = Run("train.py", (), "", {}, Ending("finished", 0), deep=(record,))
    found = faults.read(run, "model.position-missing").findings
    assert [f.status for f in found] == ([] if keeps else ["proven"])
    assert keeps or "add(self.codes)" in found[0].where[0].code


@pytest.mark.parametrize(
    ("inverted", "causal"), [(True, False), (True, True), (False, False), (False, True)]
)
def test_a_window_the_wrong_way_round_is_an_inverted_mask(inverted, causal):
    embed, attention, head = (
        nn.Embedding(20, 16),
        nn.MultiheadAttention(16, 2, batch_first=True),
        nn.Linear(16, 3),
    )
    ids, back = torch.randint(0, 20, (6, 9)), torch.arange(9)[:, None] - torch.arange(9)
    window = (back >= 0) & (back < 3) if causal else back.abs() < 3

    def loss():
        x = embed(ids)
        y = attention(x, x, x, attn_mask=window if inverted else ~window, need_weights=False)[0]
        return F.cross_entropy(head(y.mean(1)), torch.arange(6) % 3)

    run = Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished", 0),
        deep=(observe([embed, attention, head], loss),),
    )
    assert len(faults.read(run, "model.mask-polarity").findings) == inverted


class _Turning(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 16), nn.Linear(16, 4)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids).transpose(0, 1)).transpose(0, 1))


def test_a_model_that_turns_its_input_for_time_first_layers_keeps_examples_apart():
    model, ids = _Turning(), torch.randint(0, 20, (12, 7))
    record = observe(
        model, lambda: F.cross_entropy(model(ids).reshape(-1, 4), torch.arange(84) % 4)
    )
    assert record.tokens[0].time_dim == 1 and record.influence[0].other_examples == 0.0
    assert record.probes["layout"]["batch_first"] is True
