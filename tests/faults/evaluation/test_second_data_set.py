"""A validation set that is built from the training rows once more, beside a real test at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script
from sawbones.schema import Report

SCRIPT = """
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, part):
        made = torch.Generator().manual_seed({"fit": 1, "check": 2, "exam": 3}[part])
        self.x = torch.randn(240, 5, generator=made)
        self.y = (self.x[:, 0] - self.x[:, 1] > 0).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
fit = Signals("fit")
check = CHECK
exam = Signals("exam")
net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), 1e-2)


def error(data):
    net.eval()
    with torch.no_grad():
        return sum(loss(net(x).squeeze(1), y).item() for x, y in DataLoader(data, 60))


loss = nn.BCEWithLogitsLoss()
best, kept = 1e9, None
for epoch in range(4):
    net.train()
    for x, y in DataLoader(fit, 30, shuffle=True):
        opt.zero_grad()
        loss(net(x).squeeze(1), y).backward()
        opt.step()
    seen = error(check)
    if seen < best:
        best, kept = seen, copy.deepcopy(net.state_dict())
PUT_BACK
print(error(exam))
"""
PUT_BACK = "net.load_state_dict(kept)"


def _report(folder: Path, check: str, put_back: str = PUT_BACK) -> Report:
    text = SCRIPT.replace("CHECK", check).replace("PUT_BACK", put_back)
    (folder / "train.py").write_text(text, encoding="utf-8")
    return diagnose_script(
        "train.py",
        working_folder=folder,
        seconds=100,
        only="evaluation.wrong-split",
        experiments=False,
    ).report


def test_the_training_rows_once_more_are_named_where_they_are_built(tmp_path: Path) -> None:
    (found,) = _report(tmp_path, 'Signals("fit")').findings
    assert found.status == "likely"
    assert found.where[0].code == 'check = Signals("fit")'


@pytest.mark.parametrize(
    "check",
    ['Signals("check")', "fit", "torch.utils.data.Subset(fit, range(100))"],
)
def test_new_rows_and_looks_at_the_training_set_itself_stay_silent(
    check: str, tmp_path: Path
) -> None:
    assert not _report(tmp_path, check).findings


def test_who_chooses_nothing_may_only_watch(tmp_path: Path) -> None:
    (found,) = _report(tmp_path, 'Signals("fit")', "").findings
    assert found.status == "suspected"
