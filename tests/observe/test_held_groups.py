"""Groups on both sides of a split, found in a frame's own variables."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

from sawbones.observe.signals import held_groups as signal
from sawbones.schema.held import HeldGroups

SUBJECTS = [
    number // 10 for number in range(300)
]  # lists are no columns: the signal finds what the tests hold
OF_SUBJECT = [random.Random(subject).randrange(2) for subject in range(30)]
ILL = [OF_SUBJECT[subject] for subject in SUBJECTS]


@pytest.fixture(autouse=True)
def _user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "is_user_file", lambda name: name == __file__)


def _of_tables(train: pd.DataFrame, test: pd.DataFrame) -> tuple[HeldGroups, ...]:
    target = torch.tensor(train["ill"].to_numpy(), dtype=torch.float32)
    assert len(target)
    return signal.held_groups(sys._getframe())


def test_rows_dealt_out() -> None:
    table = pd.DataFrame({"subject": [f"S{s}" for s in SUBJECTS], "ill": ILL})
    order = np.random.default_rng(0).permutation(300)
    (found,) = [
        r
        for r in _of_tables(table.iloc[order[:240]], table.iloc[order[240:]])
        if r.column == "subject"
    ]
    assert found.share == 1.0
    assert found.classes == 2
    assert found.rows == (240, 60)


def test_whole_groups_held_out() -> None:
    table = pd.DataFrame({"subject": SUBJECTS, "ill": ILL})
    (found,) = _of_tables(table[table["subject"] < 24], table[table["subject"] >= 24])
    assert found.share == 0.0


@pytest.mark.parametrize(("own", "classes"), [(True, 2), (False, 0)])
def test_subsets_of_a_data_set(own: bool, classes: int) -> None:
    labels = torch.tensor(ILL) if own else torch.arange(300) % 2
    data = TensorDataset(torch.zeros(300, 4), labels)
    data.subject = torch.tensor(SUBJECTS)
    parts = random_split(data, [240, 60], generator=torch.Generator().manual_seed(0))
    assert len(parts) == 2
    found = [r for r in signal.held_groups(sys._getframe()) if r.groups == 30]
    assert [r.classes for r in found] == [classes]


@pytest.mark.parametrize("decides", [lambda age: age >= 42, lambda age: age % 2])
def test_a_number_that_decides_the_class_is_a_feature(decides: Any) -> None:
    age = torch.arange(300) % 30 + 25
    labels = torch.tensor([int(decides(int(a))) for a in age])
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    train, test = order[:240], order[240:]
    assert len(labels) == len(train) + len(test)
    assert [r.classes for r in signal.held_groups(sys._getframe()) if r.groups == 30] == [0]


class _Walks(Dataset[Any]):
    def __init__(self, rows: list[tuple[int, int]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


@pytest.mark.parametrize(("whole", "share"), [(False, 1.0), (True, 0.0)])
def test_two_data_sets_of_records_with_ids_given_out_in_turns(whole: bool, share: float) -> None:
    order = list(range(300)) if whole else random.Random(0).sample(range(300), 300)
    rows = [(SUBJECTS[i], SUBJECTS[i] % 2) for i in order]
    loaders = DataLoader(_Walks(rows[:240])), DataLoader(_Walks(rows[240:]))
    assert len(loaders) == 2
    (found,) = signal.held_groups(sys._getframe())
    assert (found.groups, found.share, found.classes) == (30, share, 2)
