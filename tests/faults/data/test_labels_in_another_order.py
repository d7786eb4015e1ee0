"""Labels beside the wrong inputs are told from labels that are noise by an order that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script
from sawbones.schema import Finding

FAULT = "data.labels-misaligned"
TRAINING = """
loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=30, shuffle=True)
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(4):
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(net(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
DATA = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(720, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
"""
APART = "x = x[torch.randperm(720)]\ny = y[torch.randperm(720)]\n"
SCALED_LATER = "x = x[torch.randperm(720)]\nx = (x - x.mean(0)) / x.std(0)\n"
AS_TEXTS = """
names = [f"row{i}.npy" for i in range(720)]
x = torch.stack([x[int(name[3:-4])] for name in sorted(names)])
"""
NOISE = "y = torch.randint(0, 3, (720,))\n"
ANOTHER_LABEL = "other = y\ny = torch.randint(0, 3, (720,))\n"


def _found(folder: Path, change: str, **settings: bool) -> Finding | None:
    (folder / "train.py").write_text(DATA + change + TRAINING)
    found = diagnose_script(
        "train.py", working_folder=folder, seconds=120, only=FAULT, **settings
    ).report.findings
    return found[0] if found else None


@pytest.mark.parametrize(("change", "line"), [(APART, 10), (SCALED_LATER, 9), (AS_TEXTS, 11)])
def test_an_order_in_which_the_same_rows_tell_their_labels_names_it(
    tmp_path: Path, change: str, line: int
) -> None:
    found = _found(tmp_path, change, experiments=False)
    assert found is not None and found.status == "likely"
    assert any("do predict their labels" in e.text for e in found.evidence)
    assert found.where[0].line == line


@pytest.mark.parametrize("change", [NOISE, ANOTHER_LABEL], ids=["noise", "another label"])
def test_labels_that_are_noise_stay_a_suspicion_although_a_batch_can_be_memorised(
    tmp_path: Path, change: str
) -> None:
    found = _found(tmp_path, change, experiments=True)
    assert found is None or found.status == "suspected"


BY_NAME = """
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
rng = np.random.default_rng(4)
plots = pd.DataFrame({"plot": [f"P{k}" for k in rng.permutation(4000)[:720] + 7]})
soil = rng.normal(size=(720, 3))
plots["yield_class"] = (soil @ rng.normal(size=(3, 3))).argmax(1)
cores = pd.DataFrame(np.repeat(soil, 4, axis=0) + rng.normal(0, 0.3, (2880, 3)), columns=list("abc"))
cores["plot"] = np.repeat(plots["plot"].to_numpy(), 4)
means = cores.groupby("plot").mean(){reset}
labels = plots["yield_class"].to_numpy()
x = torch.tensor(means[["a", "b", "c"]].to_numpy(), dtype=torch.float32)
y = torch.tensor(labels)
class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 3))
        self.criterion = nn.CrossEntropyLoss()
    def forward(self, rows):
        return self.net(rows)
    def loss_of(self, rows, labels):
        return self.criterion(self(rows), labels)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
for epoch in range(4):
    for rows, wanted in DataLoader(TensorDataset(x[:600], y[:600]), batch_size=30, shuffle=True):
        loss = field.loss_of(rows, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOOKED_UP = 'plots.set_index("plot").loc[means.index, "yield_class"].to_numpy()'


@pytest.mark.parametrize("reset", ["", ".reset_index()"], ids=["labels", "column"])
def test_groups_in_the_order_of_their_names_beside_labels_in_that_of_a_table_are_named(
    tmp_path: Path, reset: str
) -> None:
    (tmp_path / "train.py").write_text(BY_NAME.replace("{reset}", reset))
    found = diagnose_script(
        "train.py", working_folder=tmp_path, seconds=120, only=FAULT, experiments=False
    ).report.findings
    assert [f.status for f in found] == ["likely"]
    assert found[0].where[0].line == 14  # where the rows were put into another order


def test_labels_that_are_looked_up_by_name_are_silent(tmp_path: Path) -> None:
    program = BY_NAME.replace("{reset}", "").replace('plots["yield_class"].to_numpy()', LOOKED_UP)
    (tmp_path / "train.py").write_text(program)
    report = diagnose_script(
        "train.py", working_folder=tmp_path, seconds=120, only=FAULT, experiments=False
    ).report
    assert not report.findings


SORTED_WHEN_JOINED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
torch.manual_seed(0)
texts = []
for _ in range(720):
    kind = int(torch.randint(0, 3, (1,)))
    words = int(torch.randint(4, 16, (1,)))
    tokens = torch.randint(5, 20, (words,))
    tokens[::2] += 15 * (1 + kind)
    texts.append((tokens, kind))

def joined(pairs):
    rows = sorted((tokens for tokens, _ in pairs), key=len)
    return pad_sequence(rows, batch_first=True), torch.tensor([kind for _, kind in pairs])

class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.tell = nn.Embedding(70, 12, padding_idx=0), nn.Linear(12, 3)

    def forward(self, rows):
        return self.tell(self.look(rows).sum(1) / (rows > 0).sum(1, keepdim=True))

net = Bag()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(4):
    for rows, kinds in DataLoader(texts, batch_size=30, shuffle=True, collate_fn=joined):
        loss = nn.functional.cross_entropy(net(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_the_line_is_the_one_that_sorts_and_not_those_that_draw_single_numbers(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(SORTED_WHEN_JOINED)
    found = diagnose_script(
        "train.py", working_folder=tmp_path, seconds=120, only=FAULT, experiments=False
    ).report.findings
    assert [f.where[0].line for f in found] == [16]
