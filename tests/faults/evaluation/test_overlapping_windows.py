"""Windows of one recording that overlap, dealt out or cut at a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

SCRIPT = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

rng = np.random.default_rng(0)
torch.manual_seed(0)

class Motor(Dataset):
    def __init__(self, length=6000, width=40, hop=10):
        self.is_worn = (np.arange(length) // 150) % 2
        hum = np.sin(np.arange(length) * np.where(self.is_worn, 0.9, 0.6))
        self.hum = (hum + rng.normal(0, 0.5, length)).astype(np.float32)
        self.starts, self.width = np.arange(0, length - width, hop), width

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        start = self.starts[i]
        return self.hum[None, start : start + self.width], self.is_worn[start + self.width // 2]

motor = Motor()
order = {order}
train, held = Subset(motor, order[:450]), Subset(motor, order[454:])
net = nn.Sequential(nn.Conv1d(1, 8, 9), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(3):
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    with torch.no_grad():
        print(np.mean([(net(x).argmax(1) == y).float().mean() for x, y in DataLoader(held, 64)]))
"""


@pytest.mark.parametrize(
    ("order", "found"), [("rng.permutation(len(motor))", True), ("np.arange(len(motor))", False)]
)
def test_windows_that_are_dealt_out_share_their_steps_whatever_they_are_asked_for(
    order: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("{order}", order), encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="evaluation.leak-contamination",
        experiments=False,
    ).report
    assert [f.status for f in report.findings] == (["likely"] if found else [])
    assert all("permutation" in f.where[0].code for f in report.findings)


SPECTRA = """
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
parts = {"train": ([], []), "test": ([], [])}
for motor in range(40):
    hum = np.sin(np.arange(600) * (0.9 if motor % 2 else 0.6)) + rng.normal(0, 0.5, 600)
    side = "test" if motor % 4 > 2 else "train"
    for start in range(0, 560, 10):
        {dealt}
        parts[side][0].append(hum[start : start + 40])
        parts[side][1].append(motor % 2)

def spectra(windows, labels):
    power = np.log(np.abs(np.fft.rfft(np.stack(windows))) + 0.1)
    return torch.tensor(power).float(), torch.tensor(labels)

(x, y), (held, wanted) = spectra(*parts["train"]), spectra(*parts["test"])
net = nn.Sequential(nn.Linear(21, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(3):
    for rows in torch.randperm(len(x)).split(64):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
    with torch.no_grad():
        print((net(held).argmax(1) == wanted).float().mean())
"""


@pytest.mark.parametrize(
    ("dealt", "found"),
    [('side = rng.choice(["train", "test"], p=[0.75, 0.25])', True), ("", False)],
)
def test_windows_are_compared_as_they_were_before_something_was_made_of_them(
    dealt: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SPECTRA.replace("{dealt}", dealt), encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="evaluation.leak-contamination",
        experiments=False,
    ).report
    assert [f.status for f in report.findings] == (["likely"] if found else [])
