"""Verdicts from two runs, one of them with other rows in evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sawbones.diagnosis import diagnose_script
from sawbones.schema import Site
from sawbones.schema.errors import SawbonesError
from sawbones.schema.one_off import Difference, TwinRun
from sawbones.schema.sources import (
    FollowedCall,
    Future,
    HeldValue,
    Moved,
    Place,
    RowChange,
    Sources,
    Windows,
)
from sawbones.trials.source_change import (
    _if_repeatable,
    _windows,
    first_moved,
    judge_features,
    judge_future,
    judge_labels,
    judge_labels_of_others,
    judge_neighbours,
)

PLACE = Place("train.py", "<module>", 3, 4, ("x",))


def _call(rows: list[int], columns: list[int], phase: str = "train") -> FollowedCall:
    targets = tuple(float(r % 2) for r in range(len(rows)))
    return FollowedCall(phase, tuple(rows), tuple(columns), targets=targets)


def _side(*calls: FollowedCall) -> Sources:
    return Sources(calls=calls, changed=("x",), early=tuple(range(25)), rows=(90,))


class _NoTime:
    """A bench whose budget is spent."""

    def rerun(self, **_: Any) -> Any:
        raise SawbonesError("no time is left in the budget")


def test_a_control_that_there_is_no_time_for_does_not_say_that_the_script_never_repeats() -> None:
    bench: Any = _NoTime()
    told = _if_repeatable(bench, _side(), PLACE, Moved("moved"), 24)
    assert told == Moved("refused", "no time is left in the budget")


def test_training_rows_that_move_are_counted() -> None:
    before, after = _side(_call(list(range(25)), [1])), _side(_call([*range(20), *[-1] * 5], [2]))
    told = judge_features(before, after)
    assert (told.outcome, told.moved, told.compared) == ("moved", 5, 25)


def test_training_rows_that_stay_clear_the_preprocessing() -> None:
    same = _side(_call(list(range(25)), [1]))
    assert judge_features(same, same).outcome == "kept"


def test_a_row_after_the_changed_ones_says_nothing() -> None:
    """A random walk carries a change on to later rows."""
    before = _side(_call([*range(25), 95], [1]))
    after = _side(_call([*range(25), -1], [2]))
    assert judge_features(before, after).outcome == "kept"


def test_a_split_that_moves_with_the_change_is_refused() -> None:
    before = _side(_call(list(range(25)), [1]))
    after = _side(replace(_call([-1] * 25, [2]), targets=(1.0,) * 25))
    told = judge_features(before, after)
    assert told.outcome == "refused"
    assert "split" in told.why


def test_a_change_that_reached_nothing_is_refused() -> None:
    side = _side(_call(list(range(25)), [1]))
    assert judge_features(side, replace(side, changed=())).outcome == "refused"


def test_ids_that_are_numbered_otherwise_are_no_leak() -> None:
    before = _side(replace(_call(list(range(25)), [1]), is_real=False))
    after = _side(replace(_call([-1] * 25, [2]), is_real=False))
    assert "vocabulary" in judge_features(before, after).why


def test_one_column_that_follows_the_labels_is_named() -> None:
    before = _side(_call(list(range(25)), [1, 2, 3]), _call([30, 31], [4, 5, 6], "eval"))
    after = _side(_call(list(range(25)), [1, 2, 3]), _call([-1, 31], [4, 7, 6], "eval"))
    told = judge_labels(before, after)
    assert (told.outcome, told.columns, told.moved) == ("moved", (1,), 1)


def test_a_row_made_from_its_own_label_is_no_leak_where_data_are_made_up() -> None:
    before = _side(_call(list(range(25)), [1, 2, 3]), _call([30, 31], [4, 5, 6], "eval"))
    own = _side(_call(list(range(25)), [1, 2, 3]), _call([-1, 31], [4, 7, 6], "eval"))
    assert judge_labels_of_others(before, own).outcome == "kept"
    rate = _side(_call([*range(24), -1], [1, 9, 3]), _call([-1, 31], [4, 7, 6], "eval"))
    told = judge_labels_of_others(before, rate)
    assert (told.outcome, told.columns, told.moved, told.compared) == ("moved", (1,), 1, 25)


def test_a_column_without_other_values_does_not_show_that_the_split_has_stayed() -> None:
    """A stratified split draws others of the same class when labels are exchanged."""
    before = _side(_call(list(range(25)), [1, 2, 3]), _call(list(range(25, 50)), [4, 5, 3]))
    after = _side(_call([-1] * 25, [6, 7, 3]), _call([-2] * 25, [8, 9, 3]))
    assert judge_labels_of_others(before, after).outcome == "refused"
    stays = _side(_call([-1] * 25, [6, 2, 3]), _call([-2] * 25, [8, 5, 3]))
    assert judge_labels_of_others(before, stays).columns == (0,)


class _Repeats:
    """A bench that gives the same run again, and keeps what was to be changed."""

    def __init__(self, sources: Sources) -> None:
        self.sources, self.changes = sources, list[RowChange]()
        self.patient = SimpleNamespace(working_folder=Path())

    def rerun(self, extra: Any, **_: Any) -> Any:
        self.changes.append(extra["source_change"])
        first = len(self.changes) == 1
        told = replace(self.sources, calls=(_call([-1] * 25, [2]),)) if first else self.sources
        return SimpleNamespace(sources=told, ending=SimpleNamespace(kind="finished"))


def test_the_control_of_windows_is_about_rows_of_their_series() -> None:
    """The rows of the model are fewer, and numbered otherwise."""
    plan = replace(_side(_call(list(range(25)), [1])), count=25)
    windows = Windows(PLACE, 400, tuple(range(300, 400)), plan.early, {}, 0)
    bench: Any = _Repeats(plan)
    run: Any = SimpleNamespace(num_steps=24, twin_run=None, losses=np.ones(24))
    features, _ = _windows(bench, run, replace(plan, windows=windows))
    assert features.outcome == "moved"
    assert [(c.what, c.count, c.rows[-1]) for c in bench.changes] == [
        ("features", 400, 399),
        ("nothing", 400, 399),
    ]


@pytest.mark.parametrize(("differs", "runs"), [(None, 1), (Difference("loss", 3), 2)])
def test_a_twin_that_repeats_is_the_control_of_what_the_training_is_given(
    differs: Difference | None, runs: int
) -> None:
    plan = _side(_call(list(range(25)), [1]))
    windows = Windows(PLACE, 400, tuple(range(300, 400)), plan.early, {}, 0)
    bench: Any = _Repeats(plan)
    twin = TwinRun(25, differs=differs)
    run: Any = SimpleNamespace(num_steps=24, twin_run=twin, losses=np.ones(24))
    assert _windows(bench, run, replace(plan, windows=windows))[0].outcome == "moved"
    assert len(bench.changes) == runs


def test_inputs_that_all_follow_the_labels_prove_nothing() -> None:
    before, after = _side(_call(list(range(25)), [1, 2])), _side(_call([-1] * 25, [3, 4]))
    assert judge_labels(before, after).outcome == "refused"


def test_the_first_value_that_moved_holds_none_of_the_changed_rows() -> None:
    before = [
        HeldValue(Site("a.py", 1, "f"), "test", "evaluated", "1"),
        HeldValue(Site("a.py", 2, "f"), "x", "rows", "1", "kept"),
        HeldValue(Site("a.py", 3, "f"), "mean", "value", "1"),
    ]
    after = [
        HeldValue(Site("a.py", 1, "f"), "test", "rows", "2"),
        HeldValue(Site("a.py", 2, "f"), "x", "rows", "2", "kept"),
        HeldValue(Site("a.py", 3, "f"), "mean", "value", "2"),
    ]
    assert first_moved(before, after) == before[2]


def _series(moved: list[int], reach: int = 60) -> Moved:
    """40 evaluated rows, of which those from 30 on were changed, and `moved` with them."""
    rows = [1000 + i for i in range(40)]
    after = [r + 7 if i >= 30 or i in moved else r for i, r in enumerate(rows)]
    numbers = {r: i for i, r in enumerate(rows)}
    plan = replace(_side(_call(rows, [1], "eval")), row_of=numbers)
    future = Future(PLACE, tuple(range(30, reach)))
    return judge_future(plan, future, _side(_call(after, [2], "eval")))


def test_rows_shortly_before_the_change_that_move_look_ahead() -> None:
    told = _series([27, 28, 29])
    assert (told.outcome, told.moved, told.compared, told.reach) == ("moved", 3, 30, 3)


def test_rows_before_the_change_that_stay_look_only_back() -> None:
    assert _series([]).outcome == "kept"


def test_rows_that_all_move_are_scaled_together_and_prove_nothing() -> None:
    assert _series(list(range(30))).outcome == "refused"


SCRIPT = """
import numpy as np
import torch

torch.manual_seed(0)

def load():
    rng = np.random.default_rng(3)
    x = rng.gamma(2.0, 3.0, size=(300, 4))
    return x, (x[:, 0] + rng.normal(size=300) > 5).astype(np.int64)

x, y = load()
train, test = slice(0, 220), slice(220, 300)
low, high = np.quantile(x{part}, [0.02, 0.98], axis=0)
x = np.clip(x, low, high) - low
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    for rows in torch.arange(220).split(44):
        loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print((model(x[test]).argmax(1) == y[test]).float().mean().item())
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", ["", "[train]"], ids=["leak", "honest"])
def test_limits_taken_from_all_rows_are_proven_and_from_the_training_part_cleared(
    part: str, tmp_path: Path
) -> None:
    script = tmp_path / "clip.py"
    script.write_text(SCRIPT.replace("{part}", part), encoding="utf-8")
    found = diagnose_script(
        script.name, working_folder=tmp_path, only="evaluation.leak-*", seconds=300
    )
    told = found.run.source_change.features
    findings = {f.fault: f for f in found.report.findings}
    if part:
        assert told.outcome == "kept", told
        assert not findings
    else:
        finding = findings["evaluation.leak-preprocessing"]
        assert finding.status == "proven"
        assert "low, high" in finding.where[0].code


def test_rows_that_change_places_with_the_labels_are_a_split_that_moved() -> None:
    """A stratified split draws others when labels are exchanged."""
    before = _side(_call([1, 2, 3, 4], [1, 2]), _call([5, 6, 7, 8], [3, 4], "eval"))
    after = _side(_call([1, 2, 3, 4], [1, 2]), _call([5, 8, 7, 9], [5, 4], "eval"))
    told = judge_labels(before, after)
    assert (told.outcome, "split" in told.why) == ("refused", True)


def test_evaluated_rows_that_only_change_places_are_no_leak() -> None:
    """Neighbours that exchanged their labels stand at one another's place in the evaluated part."""
    before = _side(_call([1, 2, 3, 4], [1, 2]), _call([5, 6, 7, 8], [3, 4], "eval"))
    placed = _side(_call([1, 2, 3, 4], [1, 2]), _call([5, 7, 6, 8], [5, 6], "eval"))
    assert judge_neighbours(before, placed, True).outcome == "kept"
    others = _side(_call([1, 2, 3, 4], [1, 2]), _call([5, 7, 9, 8], [5, 6], "eval"))
    assert judge_neighbours(before, others, True).outcome == "refused"
    trained = _side(_call([1, 9, 3, 4], [1, 7]), _call([5, 7, 6, 8], [5, 6], "eval"))
    told = judge_neighbours(before, trained, True)
    assert (told.outcome, told.columns) == ("moved", (1,))


STRATIFIED = """
import numpy as np, pandas as pd, torch
from sklearn.model_selection import train_test_split
from torch import nn

table = pd.read_csv("sales.csv")
{before}
train, test = train_test_split(table, test_size=0.3, stratify=table["bought"], random_state=0)
train, test = train.copy(), test.copy()
{after}
columns = ["a", "b", "c", "d", "rate"]
x = torch.tensor(train[columns].to_numpy(), dtype=torch.float32)
y = torch.tensor(train["bought"].to_numpy())
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(4):
    for rows in torch.arange(len(x)).split(56):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
    with torch.no_grad():
        held = torch.tensor(test[columns].to_numpy(), dtype=torch.float32)
        guess = net(held).argmax(1).numpy()
        print(f"accuracy {(guess == test['bought'].to_numpy()).mean():.3f}")
"""
OF_ALL = 'table["rate"] = table.groupby("shop")["bought"].transform("mean")'
OF_TRAINING = """
rates = train.groupby("shop")["bought"].mean()
for part in (train, test):
    part["rate"] = part["shop"].map(rates).fillna(train["bought"].mean())
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("before", "after"), [(OF_ALL, ""), ("", OF_TRAINING)], ids=["leak", "honest"]
)
def test_a_rate_of_the_labels_behind_a_stratified_split_is_proven_and_one_of_training_cleared(
    before: str, after: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    measured = rng.normal(size=(800, 4))
    shops, noise = rng.integers(0, 40, 800), rng.normal(size=800)
    lines = [
        f"{a:.5f},{b:.5f},{c:.5f},{d:.5f},{shop},{int(a + other > 0.3)}"
        for (a, b, c, d), shop, other in zip(measured, shops, noise, strict=True)
    ]
    text = "\n".join(["a,b,c,d,shop,bought", *lines, ""])
    (tmp_path / "sales.csv").write_text(text, encoding="utf-8")
    script = STRATIFIED.replace("{before}", before).replace("{after}", after)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    found = diagnose_script(
        "train.py", working_folder=tmp_path, only="evaluation.leak-*", seconds=200
    )
    findings = {f.fault: f.status for f in found.report.findings}
    told = found.run.source_change.labels
    if before:
        assert findings["evaluation.leak-target"] == "proven"
        assert told.columns == (4,)
    else:
        assert told.outcome == "kept", told
        assert "evaluation.leak-target" not in findings


MADE_FROM_LABELS = """
import numpy as np, pandas as pd, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
people = pd.DataFrame({"site": rng.choice(3, 300), "kind": rng.choice(2, 300)})
beats = np.stack([np.sin(np.arange(24) / (3 + k)) + rng.normal(0, 0.8, 24) for k in people.kind])
train = people.sample(frac=0.7, random_state=0)
test = people.drop(train.index)
x, y = torch.tensor(beats, dtype=torch.float32), torch.tensor(people.kind.to_numpy())
rows, held = torch.tensor(train.index.tolist()), torch.tensor(test.index.tolist())
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(3):
    for xb, yb in DataLoader(TensorDataset(x[rows], y[rows]), batch_size=32, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(net(xb), yb).backward()
        opt.step()
    with torch.no_grad():
        print((net(x[held]).argmax(1) == y[held]).float().mean().item())
"""


def test_data_that_a_script_makes_up_from_a_table_of_labels_are_no_leak(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MADE_FROM_LABELS, encoding="utf-8")
    fault = "evaluation.leak-target"
    report = diagnose_script("train.py", working_folder=tmp_path, seconds=150, only=fault).report
    assert [f.status for f in report.findings if f.fault == fault] == []
