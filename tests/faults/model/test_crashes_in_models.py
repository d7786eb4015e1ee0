"""Scripts that die in a layer, an operator or a backward pass: the cause in words, its line, the
fix with the right number.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import assert_named_by_one_finding, died, explanations

HEAD = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
"""

FLATTENED = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(4 * 8 * 8, 2)  # ROOT

    def forward(self, x):
        x = torch.relu(self.conv(x))
        x = x.view(x.size(0), -1)
        return self.fc(x)

model = Net()
model(torch.randn(6, 1, 8, 8)).sum().backward()
"""
)
CHANNELS = (
    HEAD
    + """
model = nn.Sequential(
    nn.Conv2d(3, 8, 3),
    nn.ReLU(),
    nn.Conv2d(16, 4, 3),  # ROOT
)
model(torch.randn(2, 3, 12, 12))
"""
)
TOO_SMALL = (
    HEAD
    + """
model = nn.Sequential(
    nn.MaxPool2d(4),
    nn.Conv2d(1, 4, 5),  # ROOT
)
model(torch.randn(2, 1, 12, 12))
"""
)
ADDED = (
    HEAD
    + """
x = torch.randn(4, 7, 6)
context = x.mean(2)  # ROOT
y = x + context[:, None]
"""
)
BY_NAME = (
    HEAD
    + """
a = torch.randn(8, 5)
b = torch.randn(8, 4)
c = a * b  # ROOT
"""
)
VIEWED = (
    HEAD
    + """
x = torch.randn(6, 3, 5)
y = x.view(6, 16)  # ROOT
"""
)
LOSS_SHAPE = (
    HEAD
    + """
x = torch.randn(8, 5)
y = (x.sum(1) > 0).float()  # ROOT
model = nn.Sequential(nn.Linear(5, 1), nn.Sigmoid())
loss = nn.BCELoss()(model(x), y)
"""
)
ROWS_LOST = (
    HEAD
    + """
x = torch.randn(8, 2, 4)
scores = nn.Linear(4, 3)(x.view(-1, 4))  # ROOT
labels = torch.zeros(8, dtype=torch.long)
loss = nn.functional.cross_entropy(scores, labels)
"""
)
DOUBLE = (
    HEAD
    + """
from torch.utils.data import DataLoader, TensorDataset
table = np.ones((12, 5))
inputs = torch.from_numpy(table)  # ROOT
targets = torch.ones(12, 1)
model = nn.Linear(5, 1)
for x, y in DataLoader(TensorDataset(inputs, targets), batch_size=4):
    loss = nn.functional.mse_loss(model(x), y)
"""
)
FLOAT_LABELS = (
    HEAD
    + """
labels = torch.zeros(8)  # ROOT
loss = nn.CrossEntropyLoss()(nn.Linear(5, 3)(torch.randn(8, 5)), labels)
"""
)
INTEGER_MEAN = (
    HEAD
    + """
counts = torch.arange(8)  # ROOT
print(counts.mean())
"""
)
SQUEEZED = (
    HEAD
    + """
scores = nn.Linear(5, 3)(torch.randn(1, 5))
scores = scores.squeeze()  # ROOT
best = scores.argmax(dim=1)
"""
)
NO_CHANNELS = (
    HEAD
    + """
images = torch.randn(6, 8, 8)
model = nn.Conv2d(1, 4, 3)
model(images)  # ROOT
"""
)
IN_PLACE = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 6)

    def forward(self, x):
        h = torch.sigmoid(self.a(x))
        h *= 2  # ROOT
        return h

count = 0
for step in range(3):
    count += 1
    loss = Net()(torch.randn(4, 5)).sum()
    loss.backward()
"""
)
PLAIN_LIST = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(5, 5), nn.Linear(5, 1)]  # ROOT

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
)
NO_SUPER = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(5, 1)  # ROOT

model = Net()
"""
)
MISSPELT = (
    HEAD
    + """
class Net(nn.Module):
    def __int__(self):  # ROOT
        self.fc = nn.Linear(5, 1)

    def forward(self, x):
        return self.fc(x)

model = Net()
model(torch.randn(2, 5))
"""
)
NEVER_BUILT = (
    HEAD
    + """
class Net(nn.Module):
    def build(self):  # ROOT
        self.fc = nn.Linear(5, 1)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
)
LOCAL_NAMES = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = nn.Linear(5, 5)  # ROOT
        out = nn.Linear(5, 1)

weights = Net()
given = weights.parameters()
optimizer = torch.optim.SGD(given, lr=0.1)
"""
)
USED_UP = (
    HEAD
    + """
model = nn.Linear(5, 1)
given = model.parameters()  # ROOT
print(sum(p.numel() for p in given))
optimizer = torch.optim.SGD(given, lr=0.1)
"""
)
BATCH_OF_ONE = (
    HEAD
    + """
image = torch.randn(1, 3, 8, 8)
model = nn.Conv2d(1, 4, 3)  # ROOT
model(image)
"""
)
CHANNELS_LAST = (
    HEAD
    + """
images = torch.randn(2, 8, 8, 3)  # ROOT
model = nn.Conv2d(3, 4, 3)
model(images)
"""
)
TWO_EMBEDDINGS = (
    HEAD
    + """
model = nn.Sequential(
    nn.Embedding(10, 4),
    nn.Embedding(10, 4),  # ROOT
)
model(torch.zeros(2, 3, dtype=torch.long))
"""
)
ONE_COLUMN = (
    HEAD
    + """
scores = nn.Linear(5, 1)(torch.randn(8, 5))
labels = torch.zeros(8)  # ROOT
loss = nn.CrossEntropyLoss()(scores, labels)
"""
)
HALVED = (
    HEAD
    + """
x = torch.randn(2, 1, 9, 9)
skip = nn.Conv2d(1, 4, 3, padding=1)(x)
down = nn.functional.max_pool2d(skip, 2)
up = nn.functional.interpolate(down, scale_factor=2)
out = skip + up  # ROOT
"""
)
SQUEEZED_AWAY = (
    HEAD
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 1)

    def forward(self, x):
        return self.fc(x).squeeze()  # ROOT

model = Net()
found = []
with torch.no_grad():
    for rows in (3, 3, 1):
        found.append(model(torch.randn(rows, 5)))
print(torch.cat(found))
"""
)
NESTED = (
    HEAD
    + """
model = nn.Sequential(
    nn.Linear(5, 4),
    nn.Sequential(
        nn.Embedding(10, 4),  # ROOT
    ),
)
model(torch.randn(2, 5))
"""
)
SLICED = (
    HEAD
    + """
top = torch.randn(4, 5).topk(3).indices.t()
print(top[:2].view(-1))  # ROOT
"""
)
CASES = {
    "slice of a transposed tensor": (SLICED, "model.shape-mismatch", "top[:2].reshape("),
    "width after a flatten": (FLATTENED, "model.width-mismatch", "nn.Linear(144, 2)"),
    "channels": (CHANNELS, "model.width-mismatch", "nn.Conv2d(8, 4, 3)"),
    "kernel": (TOO_SMALL, "model.width-mismatch", "at most 3"),
    "axis lost by a mean": (ADDED, "model.shape-mismatch", ""),
    "two names": (BY_NAME, "model.shape-mismatch", "size 5"),
    "view": (VIEWED, "model.shape-mismatch", "6 x 15"),
    "targets": (LOSS_SHAPE, "model.shape-mismatch", "y.unsqueeze(1)"),
    "rows": (ROWS_LOST, "model.shape-mismatch", "x.size(0)"),
    "float64": (DOUBLE, "model.wrong-dtype", "float()"),
    "float labels": (FLOAT_LABELS, "model.wrong-dtype", "labels.long()"),
    "integer mean": (INTEGER_MEAN, "model.wrong-dtype", "counts.float()"),
    "squeezed": (SQUEEZED, "model.missing-batch-axis", "squeeze(-1)"),
    "no channels": (NO_CHANNELS, "model.missing-batch-axis", "images.unsqueeze(1)"),
    "in place": (IN_PLACE, "model.inplace-modified", "h = h * 2"),
    "plain list": (PLAIN_LIST, "model.no-parameters", "nn.ModuleList"),
    "no super": (NO_SUPER, "model.no-parameters", "super().__init__()"),
    "misspelt constructor": (MISSPELT, "model.no-parameters", "__init__"),
    "method not run": (NEVER_BUILT, "model.no-parameters", "self.build()"),
    "local names": (LOCAL_NAMES, "model.no-parameters", "self.hidden = "),
    "generator": (USED_UP, "model.no-parameters", "list(model.parameters())"),
    "one is no channel": (BATCH_OF_ONE, "model.width-mismatch", "nn.Conv2d(3, 4, 3)"),
    "channels last": (CHANNELS_LAST, "model.width-mismatch", "permute(0, 3, 1, 2)"),
    "handed on": (TWO_EMBEDDINGS, "model.wrong-dtype", "out of the nn.Sequential"),
    "handed to a nested one": (NESTED, "model.wrong-dtype", "out of the nn.Sequential"),
    "one column": (ONE_COLUMN, "model.wrong-dtype", "BCEWithLogitsLoss"),
    "halved": (HALVED, "model.shape-mismatch", "divisible by 2"),
    "squeezed away": (SQUEEZED_AWAY, "model.missing-batch-axis", "squeeze(-1)"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_its_line_and_the_fix_are_named_by_one_finding(name: str, tmp_path: Path) -> None:
    assert_named_by_one_finding(tmp_path, *CASES[name])


def test_a_fix_that_is_local_replaces_the_number_in_the_constructor(tmp_path: Path) -> None:
    (finding,) = explanations(died(tmp_path, FLATTENED))
    assert finding.title == "Linear fc expects 256 columns and is given 144"
    assert finding.status == "proven"
    assert finding.fix is not None
    assert finding.fix.replace == ("nn.Linear(4 * 8 * 8, 2)", "nn.Linear(144, 2)")
