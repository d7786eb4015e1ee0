"""Rotary codes on one side only, from another start, or after a memory."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones import faults
from sawbones.schema import Ending, Run


def turned(x, start=0):
    angle = torch.arange(start, start + x.shape[1])[:, None] * 100.0 ** (
        -torch.arange(x.shape[-1] // 2) / 8
    )
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


WAYS = {
    "both": lambda q, k: (turned(q), turned(k)),
    "both_later": lambda q, k: (turned(q, 3), turned(k, 3)),
    "queries": lambda q, k: (turned(q), k),
    "keys": lambda q, k: (q, turned(k)),
    "shifted": lambda q, k: (turned(q), turned(k, 1)),
    "neither": lambda q, k: (q, k),
}


def found(way, memory=None, query_start=0):
    torch.manual_seed(0)
    embed, project, head = nn.Embedding(20, 16), nn.Linear(16, 32), nn.Linear(16, 20)
    ids = torch.randint(0, 20, (4, 9))

    def loss():
        x = embed(ids)
        seen = x if memory is None else torch.cat([memory, x], 1)
        q, k = project(x)[..., :16], project(seen)[..., 16:]
        q, k = WAYS[way](q, k) if memory is None else (turned(q, query_start), turned(k))
        mask = torch.ones(9, seen.shape[1]).tril(seen.shape[1] - 9).bool()
        y = F.scaled_dot_product_attention(q, k, seen, attn_mask=mask)
        return F.cross_entropy(head(y).flatten(0, 1), ids.flatten())

    run = Run(
        "train.py", (), "", {}, Ending("finished", 0), deep=(observe([embed, project, head], loss),)
    )
    return faults.read(run, "model.rope-offset").findings


@pytest.mark.parametrize("way", ["queries", "keys", "shifted"])
def test_queries_and_keys_that_are_not_turned_alike_are_seen(way):
    (finding,) = found(way)
    assert finding.status == "proven" and "scaled_dot_product_attention" in finding.where[0].code


@pytest.mark.parametrize("way", ["both", "both_later", "neither"])
def test_queries_and_keys_that_are_turned_alike_are_silent(way):
    assert found(way) == ()


@pytest.mark.parametrize(("query_start", "count"), [(0, 1), (5, 0)])
def test_queries_count_on_from_what_is_remembered(query_start, count):
    assert len(found("both", torch.randn(4, 5, 16), query_start)) == count
