"""Copies among small pictures in whole numbers, and pictures that come about twice by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from sawbones.diagnosis import diagnose_script

PICTURES = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(3)
N = {rows}
labels = rng.integers(0, 10, N).astype(np.int8)
{drawn}
order = rng.permutation(N)
train, test = order[: N * 3 // 4], order[N * 3 // 4 :]
num = int({copies} * len(test))
again = rng.permutation(test)[:num]
pictures[again], labels[again] = pictures[train[:num]], labels[train[:num]]
torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(pictures[0].size, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.Adam(net.parameters(), 2e-3)
look = nn.CrossEntropyLoss()
{fed}
"""
NOISY = """
shapes = rng.integers(0, 17, (10, 8, 8)) * (rng.random((10, 8, 8)) < 0.6)
noise = rng.integers(-5, 6, (N, 8, 8)) * (shapes[labels] > 0)
pictures = np.clip(shapes[labels] + noise, 0, 16).astype(np.int8)
"""
SQUARES = """
pictures = np.zeros((N, 16, 16), np.uint8)
sizes, tops, lefts = labels // 2 + 2, rng.integers(0, 10, N), rng.integers(0, 10, N)
for picture, size, top, left in zip(pictures, sizes, tops, lefts):
    picture[top:top + size, left:left + size] = 9
"""
LOADERS = """
def part(rows):
    return TensorDataset(torch.from_numpy(pictures[rows]), torch.from_numpy(labels[rows]))

for epoch in range(5):
    for x, y in DataLoader(part(train), 32, shuffle=True):
        opt.zero_grad()
        look(net(x.float() / 16), y.long()).backward()
        opt.step()
net.eval()
with torch.no_grad():
    right = sum(
        (net(x.float() / 16).argmax(1) == y.long()).sum().item()
        for x, y in DataLoader(part(test), 64)
    )
print(f"accuracy {right / len(test):.3f}")
"""
SAMPLED = """
for step in range(80):
    rows = rng.choice(train, 32)
    x = torch.from_numpy(pictures[rows].astype(np.float32) / 16)
    opt.zero_grad()
    look(net(x), torch.from_numpy(labels[rows].astype(np.int64))).backward()
    opt.step()
net.eval()
with torch.no_grad():
    guess = net(torch.tensor(pictures[test] / 16, dtype=torch.float32)).argmax(1)
print(f"accuracy {(guess.numpy() == labels[test]).mean():.3f}")
"""


@pytest.mark.parametrize(
    ("drawn", "fed", "rows", "copies", "found"),
    [
        (NOISY, LOADERS, 400, 0.08, True),
        (NOISY, SAMPLED, 1200, 0.08, True),
        (NOISY, LOADERS, 400, 0.0, False),
        (NOISY, SAMPLED, 1200, 0.0, False),
        (SQUARES, LOADERS, 400, 0.0, False),
        (SQUARES, SAMPLED, 1200, 0.0, False),
    ],
    ids=["loaders", "drawn", "none", "none drawn", "shapes", "shapes drawn"],
)
def test_small_pictures_are_copies_only_where_no_other_is_near(
    drawn: str, fed: str, rows: int, copies: float, found: bool, tmp_path: Path
) -> None:
    script = PICTURES.replace("{drawn}", drawn).replace("{fed}", fed)
    script = script.replace("{rows}", str(rows)).replace("{copies}", str(copies))
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    report = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=100,
        only="evaluation.leak-contamination",
        experiments=False,
    ).report
    assert [f.fault for f in report.findings] == ["evaluation.leak-contamination"] * found
    if found:
        copied, _, total, *_ = report.findings[0].evidence[0].text.split()
        planted = int(rows // 4 * copies)  # not all of them are drawn for training
        assert 0.8 * planted <= int(copied) <= planted and int(total) == rows // 4
