"""Scripts that fail, run once each under the recorder."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

LOADER = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 6)
x[53, 2] = float("inf")
data = DataLoader(TensorDataset(x, torch.randn(96, 1)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for number, (features, wanted) in enumerate(data):
    loss = nn.functional.mse_loss(model(features), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(number, loss.item().hex())
"""

PLAIN = """
import random
import numpy as np
import torch
from torch import nn


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.out = nn.Linear(8, 20)

    def forward(self, ids):
        return self.out(self.table(ids))


def batch(step):
    ids = torch.from_numpy(np.random.randint(0, 20, (4, 7)))
    if step == 9:
        ids[2, 5] = 31
    return ids, torch.from_numpy(np.random.randint(0, 20, (4, 7)))


def train():
    model = Words()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(20):
        ids, wanted = batch(step)
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), random.random())


train()
"""


@dataclass(frozen=True)
class Recorded:
    folder: Path
    output: str
    errors: str

    @property
    def bundles(self) -> list[Path]:
        return sorted((self.folder / "run" / "bundles").glob("*.sawbones"))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "SAWBONES_RAISE": "1", **more}


def record(
    folder: Path, source: str, *flags: str, argv: tuple[str, ...] = (), **variables: str
) -> Recorded:
    (folder / "train.py").write_text(source)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sawbones",
            "run",
            "--out",
            str(folder / "run"),
            *flags,
            "train.py",
            *argv,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(**variables),
    )
    return Recorded(folder, done.stdout, done.stderr)


def sawbones(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sawbones", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=250,
        env=environment(),
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="session")
def loader_run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A NaN from one example of a shuffled loader, with dropout and batch norm on the way."""
    return record(tmp_path_factory.mktemp("loader"), LOADER)


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """An index error in a loop without a loader and without a seed."""
    return record(tmp_path_factory.mktemp("plain"), PLAIN)
