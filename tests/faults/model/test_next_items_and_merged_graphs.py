"""Outputs that are compared with the next items, and nodes of many graphs in one block."""

import pytest
import torch
from tests.observe.deep.watching import observe
from torch import nn
from torch.nn import functional as F

from sawbones import faults
from sawbones.schema import Ending, Run


def read(fault, roots, loss):
    run = Run("train.py", (), "", {}, Ending("finished", 0), deep=(observe(roots, loss),))
    return faults.read(run, fault).findings


@pytest.mark.parametrize(("diagonal", "count"), [(0, 0), (1, 1)])
def test_attention_must_not_reach_the_items_that_outputs_are_compared_with(diagonal, count):
    torch.manual_seed(0)
    items, rows = nn.Embedding(50, 16), torch.randint(1, 50, (6, 11))
    mask = torch.ones(10, 10).tril(diagonal).bool()

    def loss():
        x = items(rows[:, :-1])
        h = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
        score = (h * items(rows[:, 1:])).sum(-1)
        return F.binary_cross_entropy_with_logits(score, torch.ones_like(score))

    assert len(read("model.causal-leak", [items], loss)) == count


@pytest.mark.parametrize(("counted_on", "count"), [(True, 0), (False, 1)])
def test_edges_of_merged_graphs_count_on(counted_on, count):
    torch.manual_seed(0)
    atoms, head = nn.Embedding(5, 8), nn.Linear(8, 1)
    kinds, owner = torch.randint(0, 5, (48,)), torch.arange(8).repeat_interleave(6)
    edges = [torch.randint(0, 6, (2, 10)) + 6 * graph * counted_on for graph in range(8)]
    edges[-1][:, 0] = edges[-1].max() if not counted_on else 47

    def loss():
        source, target = torch.cat(edges, 1)
        h = atoms(kinds)
        h = h + torch.zeros_like(h).index_add(0, target, h[source])
        pooled = torch.zeros(8, 8).index_add(0, owner, h)
        return F.mse_loss(head(pooled).squeeze(-1), torch.randn(8))

    assert len(read("model.cross-sample-leak", [atoms, head], loss)) == count
