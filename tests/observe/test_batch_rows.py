"""A crash names the rows of the data set that the samples of its batch are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from sawbones.diagnosis import diagnose_run
from sawbones.observe.batch_rows import BatchRows
from sawbones.observe.hooks import loaders
from sawbones.store import read_run

BAD = 137
READINGS = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset


class Readings(Dataset):
    def __init__(self):
        drawn = torch.Generator().manual_seed(0)
        self.x = torch.randn(200, 6, generator=drawn)
        self.y = self.x[:, :3].argmax(1)
        self.y[137] = 3

    def __len__(self):
        return len(self.x)

    def __getitem__(self, row):
        if row >= len(self.x):
            raise IndexError(row)
        return self.x[row], self.y[row]


def by_label(samples):
    ordered = sorted(samples, key=lambda sample: -int(sample[1]))[:-1]
    return torch.stack([x for x, _ in ordered]), torch.stack([y for _, y in ordered])
"""
TRAINING = """
torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
BROKEN_OFF = """
data = Readings()
data.y[137] = 0
loader = DataLoader(data, 16, shuffle=True, num_workers=2, persistent_workers=True)
torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for number, (x, y) in enumerate(loader):
        if epoch and number == 3:
            y[5] = 3
            print("row", int((data.x == x[5]).all(1).nonzero()))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if not epoch and number == 1:
            break
"""
space: dict[str, Any] = {}
exec(READINGS, space)
Readings, by_label = space["Readings"], space["by_label"]


def _told(folder: Path, command: str, *parts: str) -> tuple[str, str]:
    """(what the finding says of the samples, what the script printed)"""
    (folder / "train.py").write_text("\n".join([READINGS, *parts]))
    flags = ["--out", "run"] if command == "run" else ["--no-experiments", "--keep-run", "run"]
    done = subprocess.run(
        [sys.executable, "-m", "sawbones", command, *flags, "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert "IndexError" in done.stderr + done.stdout, done.stderr
    report = diagnose_run(read_run(folder / "run")).report
    (finding,) = [f for f in report.findings if f.fault == "data.label-out-of-range"]
    return next(e.text for e in finding.evidence if "of the batch" in e.text), done.stdout


@pytest.mark.parametrize("workers", [0, 2])
def test_the_row_is_that_of_the_data_set_behind_all_subsets(workers: int, tmp_path: Path) -> None:
    made = f"""
half = Subset(Subset(Readings(), range(100, 200)), range(20, 100))
loader = DataLoader(half, 16, shuffle=True, num_workers={workers})
"""
    told, _ = _told(tmp_path, "run", made, TRAINING)
    assert f"(row {BAD} of the data set, a Readings)" in told


def test_what_nobody_numbered_is_named_by_the_batch_alone(tmp_path: Path) -> None:
    made = """
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(Readings())


loader = DataLoader(Stream(), 20)
"""
    assert "samples [17] of the batch carry it" in _told(tmp_path, "run", made, TRAINING)[0]


def test_a_collate_function_that_moves_samples_is_seen_through_or_nothing_is_said(
    tmp_path: Path,
) -> None:
    """The samples are read again under `diagnose`; a run for real reads them once."""
    made = "loader = DataLoader(Readings(), 16, shuffle=True, collate_fn=by_label)"
    assert "samples [0] of the batch carry it" in _told(tmp_path, "run", made, TRAINING)[0]
    (tmp_path / "again").mkdir()
    told, _ = _told(tmp_path / "again", "diagnose", made, TRAINING)
    assert f"samples [0] of the batch (row {BAD} of the data set, a Readings)" in told


def test_an_epoch_that_was_broken_off_does_not_move_the_next_one(tmp_path: Path) -> None:
    told, printed = _told(tmp_path, "run", BROKEN_OFF)
    row = printed.split()[1]
    assert f"samples [5] of the batch (row {row} of the data set" in told


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rows that loaders draw from here on."""

    class Recorder:
        class batches:
            rows = BatchRows()

        @staticmethod
        def is_process() -> bool:
            return True

        @staticmethod
        def guard(_: str, act: Any, *args: Any) -> None:
            act(*args)

    rows = Recorder.batches.rows
    make = loaders._make_next_index(Recorder, None, loaders._BaseDataLoaderIter._next_index)  # type: ignore[arg-type]
    monkeypatch.setattr(loaders._BaseDataLoaderIter, "_next_index", make)
    plain = loaders._BaseDataLoaderIter.__next__

    def following(self: Any) -> Any:
        value = plain(self)
        rows.came(self, value)
        return value

    monkeypatch.setattr(loaders._BaseDataLoaderIter, "__next__", following)
    return rows


def test_samples_that_a_collate_function_has_moved_are_found_by_their_values(heard: Any) -> None:
    data = Readings()
    loader = DataLoader(data, 16, shuffle=True, collate_fn=by_label)
    batch = next(iter(loader))
    drawn = heard.of(batch)
    assert not drawn.in_order
    name, numbers = drawn.rows_by_value(batch)
    assert name == "Readings"
    assert torch.equal(data.x[list(numbers)], batch[0])
    changed = (batch[0] + 1.0, batch[1])
    assert drawn.rows_by_value(changed) is None, "labels alone fit many"


def test_padded_texts_are_found_by_what_is_not_padding(heard: Any) -> None:
    texts = [[5, 6, 7], [8, 9], [5, 9, 2, 4], [3]]

    def padded(samples: list[list[int]]) -> torch.Tensor:
        width = max(map(len, samples))
        return torch.tensor([s + [0] * (width - len(s)) for s in reversed(samples)])

    loader: Any = DataLoader(texts, 4, collate_fn=padded)  # type: ignore[arg-type]
    (batch,) = list(loader)
    assert heard.of(batch).rows_by_value(batch) == ("list", (3, 2, 1, 0))
