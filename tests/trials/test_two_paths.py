"""The same row, prepared for training and for evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sawbones.diagnosis import diagnose_script
from sawbones.schema.sources import CopyPaths, KeptRow, Sources
from sawbones.trials.two_paths import judge_paths

SCRIPT = """
import numpy as np, pandas as pd, torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
n = 600
table = pd.DataFrame({"a": rng.normal(5, 2, n), "b": rng.gamma(2, 3, n), "c": rng.choice(list("xyzw"), n)})
score = 0.8 * (table.a - 5) - 0.3 * (table.b - 6) + table.c.map({"x": 1, "y": -1, "z": 0.5, "w": -2})
table["y"] = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
train, test = train_test_split(table, test_size=0.3, random_state=0)

def fitted(part):
    return part[["a", "b"]].mean(), part[["a", "b"]].std(), list(part.c.value_counts().index)

def prepared(part, fit):
    mean, std, kinds = fit
    codes = part.c.map(kinds.index)
    numbers = np.column_stack([(part[["a", "b"]] - mean) / std, codes])
    return torch.tensor(numbers, dtype=torch.float32), torch.tensor(part.y.to_numpy())

fit = fitted(train)
x, y = prepared(train, fit)
x_test, y_test = prepared(test, FIT)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(3):
    net.train()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        xb = xb NOISE
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print((net(x_test).argmax(1) == y_test).float().mean().item())
"""


@pytest.mark.parametrize(
    ("fit", "noise", "found"),
    [
        ("fitted(test)", "", ["proven"]),
        ("fit", "", []),
        ("fit", "+ 0.3 * torch.randn_like(xb)", []),
    ],
    ids=["fitted again on the test part", "fitted once", "noise in training"],
)
def test_only_a_row_that_is_prepared_by_another_fit_is_found(
    tmp_path: Path, fit: str, noise: str, found: list[str]
) -> None:
    script = SCRIPT.replace("FIT", fit).replace("NOISE", noise)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    fault = "evaluation.preprocessing-mismatch"
    report = diagnose_script("train.py", working_folder=tmp_path, seconds=200, only=fault).report
    assert [f.status for f in report.findings if f.fault == fault] == found


def _sides(first: Any, second: Any, held: Any, again: Any = None) -> tuple[CopyPaths, Sources]:
    wanted = CopyPaths((), (), train=((0, 0), (0, 1)), eval=((0, 0), (0, 1)))
    given = [("train", 0, 0, first), ("train", 0, 1, second)]
    given += [("eval", 0, 0, held), ("eval", 0, 1, again or held)]
    kept = tuple(KeptRow(*place, tuple(map(tuple, values))) for *place, values in given)
    return wanted, Sources(changed=("x",), kept=kept)


def test_copies_that_differ_within_training_decide_nothing() -> None:
    told = judge_paths(*_sides([[1.0, 2.0]], [[1.0, 2.5]], [[3.0, 4.0]]))
    assert told.outcome == "refused"
    assert "in training" in told.why


def test_copies_that_differ_within_evaluation_are_other_rows() -> None:
    told = judge_paths(*_sides([[1.0, 2.0]], [[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 0.5]]))
    assert told.outcome == "refused"
    assert "in evaluation" in told.why


def test_an_answer_that_is_given_in_training_only_is_no_other_preparation() -> None:
    _, other = _sides([[1.0], [7.0]], [[1.0], [7.0]], [[1.0], [0.0]])
    wanted = CopyPaths((), (), *2 * [((0, 0), (0, 2), (0, 1), (0, 3))])
    more = [KeptRow("train", 0, place, ((2.0,), (8.0,))) for place in (2, 3)]
    more += [KeptRow("eval", 0, place, ((2.0,), (0.0,))) for place in (2, 3)]
    told = judge_paths(wanted, replace(other, kept=(*other.kept, *more)))
    assert told.outcome == "kept"


def test_a_column_on_another_scale_is_named_with_both_values() -> None:
    told = judge_paths(*_sides([[1.0, 2.0]], [[1.0, 2.0]], [[1.0, 20.0]]))
    assert (told.outcome, told.column, told.trained, told.evaluated) == (
        "moved",
        1,
        2.0,
        20.0,
    )


def test_a_run_that_there_was_no_time_for_leaves_the_question_open() -> None:
    wanted = CopyPaths((9,), (1,), *2 * [((0, 0), (0, 1))])
    assert judge_paths(wanted, Sources("no time is left in the budget")).outcome == "open"
