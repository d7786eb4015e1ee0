"""Operands that no name holds: their shapes, dtypes and ranges come from the trace of the step."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import assert_named_by_one_finding, died

from sawbones import faults

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
TURNED_MASK = (
    HEAD
    + """
layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
words = torch.randint(1, 9, (5, 3))  # (length, batch)
absent = words == 0  # ROOT
layer(nn.Embedding(9, 8)(words), src_key_padding_mask=absent)
"""
)
LAST_ROW = (
    HEAD
    + """
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 6))
        self.top = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, x):
        read = (x.unsqueeze(1) @ self.table).squeeze()  # ROOT
        return self.top(read)[:, 0]

net = Mixer()
opt = torch.optim.SGD(net.parameters(), 1e-2)
data = torch.utils.data.TensorDataset(torch.randn(9, 4), torch.randn(9))
for x, y in torch.utils.data.DataLoader(data, batch_size=4):
    opt.zero_grad()
    (net(x) - y).square().mean().backward()
    opt.step()
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
        pytest.param(MASKED, "model.mask-shape", "repeat_interleave(2", id="mask per head"),
        pytest.param(TURNED_MASK, "model.mask-shape", "3 x 5", id="padding mask turned over"),
        pytest.param(LAST_ROW, "model.missing-batch-axis", "squeeze(-1)", id="indices of a row"),
        pytest.param(WEIGHTED, "model.wrong-dtype", "weights.float()", id="weights of a loss"),
    ],
)
def test_the_operands_explain_the_refusal(tmp_path: Path, source, fault, advice):
    assert_named_by_one_finding(tmp_path, source, fault, advice)


OVERWRITTEN = (
    HEAD
    + """
measure = nn.CrossEntropyLoss()
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(30, 4), torch.randint(0, 3, (30,))
for epoch in range(2):
    opt.zero_grad()
    error = measure(net(x), y)
    error.backward()
    opt.step()
    with torch.no_grad():
        measure = measure(net(x), y)  # ROOT
"""
)


def test_a_tensor_that_is_called_refuses_no_shapes(tmp_path: Path):
    assert_named_by_one_finding(tmp_path, OVERWRITTEN, "loop.shadowed-name", "measure_value")


COUNTED = (
    HEAD
    + """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.zeros(1, 6, dtype=torch.long))
        self.table = nn.Embedding(9, 4)

    def forward(self, words):
        places = torch.cumsum((words > 0).long(), 1) + 1
        kinds = torch.gather(self.ready.expand(3, -1), 1, places)
        return self.table(words) + kinds[..., None]

net = Reader()
opt = torch.optim.SGD(net.parameters(), 0.1)
net(torch.randint(1, 9, (3, 6))).sum().backward()
"""
)


def test_positions_that_a_model_counts_are_no_labels(tmp_path: Path):
    found = faults.read(died(tmp_path, COUNTED), strict=True).findings
    assert "model.position-bounds" in {f.fault for f in found}
    assert "data.label-out-of-range" not in {f.fault for f in found}
