"""Operands that no name holds: their shapes, dtypes and ranges come from the trace of the step."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import assert_named_by_one_finding

HEAD = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
"""
SKIP = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)

    def forward(self, x):
        skip = self.down(x)
        low = nn.functional.max_pool2d(skip, 2)
        return torch.cat((self.up(low), skip), 1)  # ROOT

data = torch.utils.data.TensorDataset(torch.randn(4, 1, 15, 16))
for (x,) in torch.utils.data.DataLoader(data, batch_size=2):
    Net()(x).sum().backward()
"""
)
VIEWED = (
    HEAD
    + """
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        h = self.lin(x)
        return h.permute(0, 2, 1).view(x.size(0), -1)  # ROOT

Heads()(torch.randn(3, 5, 8)).sum().backward()
"""
)
CHOSEN = (
    HEAD
    + """
net = nn.Linear(4, 3)
picks = torch.tensor(np.array([0.0, 2.0]))  # ROOT
chosen = net(torch.randn(2, 4)).gather(1, picks[:, None])
"""
)
SCATTERED = (
    HEAD
    + """
ids = torch.tensor([11, 12, 17])  # ROOT
net = nn.Linear(2, 2)
total = torch.zeros(6, 2).index_add(0, ids, net(torch.randn(3, 2)))
"""
)
NO_ROW = (
    HEAD
    + """
net = nn.Linear(4, 3)
labels = torch.tensor([[0], [-1]])  # ROOT
net(torch.randn(2, 4)).gather(1, labels)
"""
)
SWAPPED = (
    HEAD
    + """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(4, 7)
        self.w = nn.Parameter(torch.randn(5, 7))

    def forward(self, x):
        left, right = self.a(x), self.b(x)
        return torch.einsum("ni,ij,nj->n", right, self.w, left)  # ROOT

Pair()(torch.randn(3, 4)).sum().backward()
"""
)
MASKED = (
    HEAD
    + """
attend = nn.MultiheadAttention(8, 2, batch_first=True)
x = torch.randn(3, 5, 8)
hidden = torch.zeros(3, 5, 5, dtype=torch.bool)  # ROOT
attend(x, x, x, attn_mask=hidden)
"""
)
WEIGHTED = (
    HEAD
    + """
weights = torch.from_numpy(np.array([1.0, 2.0]))  # ROOT
criterion = nn.CrossEntropyLoss(weight=weights)
net = nn.Linear(3, 2)
criterion(net(torch.randn(4, 3)), torch.zeros(4, dtype=torch.long)).backward()
"""
)


@pytest.mark.parametrize(
    ("source", "fault", "advice"),
    [
        pytest.param(SKIP, "model.shape-mismatch", "16 along axis 2", id="skip connection"),
        pytest.param(VIEWED, "model.shape-mismatch", "reshape", id="view of a permuted value"),
        pytest.param(CHOSEN, "model.wrong-dtype", "picks.long()", id="float index of gather"),
        pytest.param(SCATTERED, "pipeline.token-out-of-vocab", "18 rows", id="ids past the rows"),
        pytest.param(NO_ROW, "pipeline.token-out-of-vocab", "-1 stands for no row", id="-1"),
        pytest.param(SWAPPED, "model.shape-mismatch", "left, self.w, right", id="einsum order"),
        pytest.param(MASKED, "model.shape-mismatch", "repeat_interleave(2", id="mask per head"),
        pytest.param(WEIGHTED, "model.wrong-dtype", "weights.float()", id="weights of a loss"),
    ],
)
def test_the_operands_explain_the_refusal(tmp_path: Path, source, fault, advice):
    assert_named_by_one_finding(tmp_path, source, fault, advice)
