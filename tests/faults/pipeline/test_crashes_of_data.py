"""Scripts that die over a batch: unpacking, samples that differ, workers."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from crash_runs import assert_named_by_one_finding, died, explanations

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
"""
THREE = (
    HEAD
    + """
loader = DataLoader(TensorDataset(torch.ones(8, 5), torch.ones(8), torch.ones(8)), batch_size=4)
for x, y in loader:  # ROOT
    pass
"""
)
STATE = (
    HEAD
    + """
out = nn.LSTM(5, 4)(torch.randn(3, 2, 5))  # ROOT
nn.Linear(4, 1)(out)
"""
)
OF_LIST = (
    HEAD
    + """
for batch in DataLoader(TensorDataset(torch.ones(8, 5), torch.ones(8)), batch_size=4):  # ROOT
    batch = batch.to("cpu")
"""
)
RAGGED = (
    HEAD
    + """
class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):  # ROOT
        return torch.ones(5 if i != 6 else 4), 1

for x, y in DataLoader(Rows(), batch_size=4):
    pass
"""
)
STACKED = (
    HEAD
    + """
rows = [torch.ones(5), torch.ones(5), torch.ones(4)]  # ROOT
x = torch.stack(rows)
"""
)
TENSORS = (
    HEAD
    + """
rows = [torch.ones(5), torch.ones(5)]
x = torch.tensor(rows)  # ROOT
"""
)
UNPICKLABLE = (
    HEAD
    + """
class Rows(Dataset):
    def __init__(self, change):
        self.change = change

    def __len__(self):
        return 8

rows = Rows(lambda x: x)  # ROOT
loader = DataLoader(rows, batch_size=4, num_workers=1, multiprocessing_context="spawn")
for x in loader:
    pass
"""
)
KEYS = (
    HEAD
    + """
class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"pixels": torch.ones(5), "label": 1}

for x, y in DataLoader(Rows(), batch_size=4):  # ROOT
    nn.Linear(5, 1)(x)
"""
)
HANDED_STATE = (
    HEAD
    + """
model = nn.Sequential(
    nn.GRU(5, 4),
    nn.Linear(4, 1),  # ROOT
)
model(torch.randn(3, 2, 5))
"""
)
OPEN_FILE = (
    HEAD
    + """
class Rows(Dataset):
    def __init__(self, path):
        self.file = open(path)  # ROOT

    def __len__(self):
        return 8

loader = DataLoader(Rows(__file__), num_workers=1, multiprocessing_context="spawn")
for x in loader:
    pass
"""
)
LATE = (
    HEAD
    + """
def join(samples):
    padded = []
    for text in samples:
        padded.append(text + [0] * (6 - len(text)))  # ROOT
    return torch.tensor(padded)

texts = [[1] * (2 + number % 4) for number in range(20)] + [[1] * 9]
for batch in DataLoader(texts, batch_size=21, collate_fn=join):
    pass
"""
)
CASES = {
    "one more": (THREE, "pipeline.wrong-unpacking", "x, y, extra1"),
    "state of a recurrent layer": (STATE, "pipeline.wrong-unpacking", "out[0]"),
    "batch is a list": (OF_LIST, "pipeline.wrong-unpacking", "batch[0]"),
    "a sample differs": (RAGGED, "pipeline.ragged-batch", "pad"),
    "stack": (STACKED, "pipeline.ragged-batch", "pad"),
    "one too long comes late": (LATE, "pipeline.ragged-batch", "pad"),
    "list of tensors": (TENSORS, "pipeline.ragged-batch", "torch.stack(rows)"),
    "worker": (UNPICKLABLE, "pipeline.worker-crash", "num_workers=0"),
    "keys of a dict": (KEYS, "pipeline.wrong-unpacking", "batch['pixels']"),
    "state handed on": (HANDED_STATE, "pipeline.wrong-unpacking", "hand its first result on"),
    "open file": (OPEN_FILE, "pipeline.worker-crash", "open it in __getitem__"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_the_cause_its_line_and_the_fix_are_named_by_one_finding(name: str, tmp_path: Path) -> None:
    assert_named_by_one_finding(tmp_path, *CASES[name])
    gc.collect()  # a file that a script left open warns here, not in a later test


def test_the_sample_that_differs_is_counted_in_its_batch(tmp_path: Path) -> None:
    (finding,) = explanations(died(tmp_path, RAGGED))
    assert finding.title.startswith("Sample 3 of 4 ")
    assert finding.explanation is not None
    assert [row.size for row in finding.explanation.sizes][2] == "Tensor of 4 values"
