"""Where data come from: rows read, hashed and changed in place, and matched with what a model got."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sawbones.observe.sources.containers import change_rows, copy_rows, read, turn_labels
from sawbones.observe.sources.lines import LineWatch
from sawbones.observe.sources.log import MAX_ROWS_MET, SourceLog
from sawbones.schema.sources import RowChange, Sources
from sawbones.trials.source_change import judge_future

ROWS = np.arange(30, 40)


def _table() -> Any:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "amount": rng.normal(5.0, 2.0, 40),
            "income": np.where(np.arange(40) == 33, np.nan, rng.normal(size=40)),
            "branch": np.arange(40) % 4,
            "note": [f"text {i} of many" for i in range(40)],
            "bad": rng.integers(0, 2, 40),
        }
    )


def test_equal_rows_have_equal_hashes_in_every_container() -> None:
    numbers = np.random.default_rng(1).normal(size=(40, 3))
    forms = [numbers, numbers.astype(np.float32), torch.tensor(numbers), numbers.tolist()]
    hashes = [read(form).hashes for form in forms]  # type: ignore[union-attr]
    assert all(np.array_equal(hashes[0], other) for other in hashes[1:])
    assert len(np.unique(hashes[0])) == 40


def test_a_change_keeps_other_rows_labels_groups_and_missing_values() -> None:
    table = _table()
    before = table.copy()
    assert change_rows(table, ROWS)
    assert table.iloc[:30].equals(before.iloc[:30])
    assert table[["branch", "bad"]].equals(before[["branch", "bad"]])
    assert np.array_equal(table.income.isna(), before.income.isna())
    assert (table.amount[30:] > before.amount.max()).all()
    assert (table.note[30:] != before.note[30:]).all()


@pytest.mark.parametrize("make", [np.asarray, torch.tensor, list])
def test_arrays_tensors_and_lists_are_changed_in_place(make: Any) -> None:
    value = make(np.random.default_rng(2).normal(size=40).tolist())
    before = [float(v) for v in value]
    assert change_rows(value, ROWS)
    moved = [i for i, v in enumerate(value) if float(v) != before[i]]
    assert moved == ROWS.tolist()


@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
def test_a_list_of_arrays_is_a_container_of_rows(make: Any) -> None:
    """As windows that are put into a list one by one, parts of one recording."""
    recording = np.random.default_rng(4).normal(size=100)
    value = [make(recording[i : i + 8]) for i in range(40)]
    before = [v + 0 for v in value]
    assert read(value).numbers.shape == (40, 8)  # type: ignore[union-attr]
    assert change_rows(value, ROWS)
    same = [bool((a == b).all()) for a, b in zip(value, before, strict=True)]
    assert [i for i, is_same in enumerate(same) if not is_same] == ROWS.tolist()
    assert copy_rows(value, ROWS, ROWS - 10)
    assert bool((value[39] == before[29]).all())
    assert read([*value, make(recording[:9])]) is None


def test_texts_are_changed_and_stay_as_long() -> None:
    value = [f"text {i} of many" for i in range(40)]
    before = list(value)
    assert change_rows(value, ROWS)
    assert [i for i, v in enumerate(value) if v != before[i]] == ROWS.tolist()
    assert [len(v) for v in value] == [len(v) for v in before]


def test_windows_that_share_their_memory_are_left_alone() -> None:
    series = torch.randn(120)
    windows, rows = series.unfold(0, 12, 1), np.arange(40, 60)
    before = series.clone()
    assert not change_rows(windows, rows)
    assert not copy_rows(windows, rows, rows - 30)
    assert torch.equal(series, before)
    assert change_rows(windows.contiguous(), rows)


def test_what_cannot_be_written_to_is_left_alone() -> None:
    value = np.random.default_rng(2).normal(size=40)
    value.flags.writeable = False
    assert not change_rows(value, ROWS)


def test_labels_change_places_among_the_chosen_rows_alone() -> None:
    labels = np.arange(40) % 3
    before = labels.copy()
    assert turn_labels(labels, 0, ROWS, np.roll(ROWS, 1))
    assert np.array_equal(labels[:30], before[:30])
    assert sorted(labels[30:]) == sorted(before[30:])
    assert not np.array_equal(labels, before)


SCRIPT = """
import numpy as np

def make():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 4))
    return x, (x[:, 0] > 0).astype(int)

x, y = make()
mean = x.mean(0)
x = x - mean
train, test = x[:70], x[70:]
"""
MADE, CENTRED = 9, 11  # lines
TRAINED, HELD = ("train", slice(0, 70)), ("eval", slice(70, 100))


def _followed(
    tmp_path: Path,
    change: RowChange | None = None,
    calls: Sequence[tuple[str, slice]] = (TRAINED, HELD),
    script: str = SCRIPT,
) -> Sources:
    """The script's lines followed, and model calls for each part afterwards."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script), encoding="utf-8")
    watch = LineWatch(lambda: SourceLog(lambda name: Path(name).name, change))
    scope: dict[str, Any] = {}
    before = sys.gettrace()
    sys.settrace(None)
    try:
        watch.start()
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), scope)
    finally:
        watch.stop()
        sys.settrace(before)
    assert watch.log is not None, watch.failed
    for phase, rows in calls:
        given, target = torch.tensor(scope["x"][rows]).float(), torch.tensor(scope["y"][rows])
        watch.log.called([("[0]", given)], phase, [target])
    return watch.record()


def test_the_rows_of_both_phases_and_the_line_where_data_are_complete_are_found(
    tmp_path: Path,
) -> None:
    plan = _followed(tmp_path)
    assert (plan.trained, plan.evaluated, plan.count) == (70, 30, 100)
    assert plan.rows == tuple(range(85, 100))
    place = plan.place
    assert place is not None
    assert (place.function, place.line, place.together) == ("<module>", MADE, True)
    assert (place.names, place.labels) == (("x",), (("y", 0),))


def test_a_change_of_evaluated_rows_reaches_the_mean_and_the_training_rows(tmp_path: Path) -> None:
    plan = _followed(tmp_path)
    assert plan.place is not None
    other = _followed(tmp_path, RowChange(plan.place, plan.count, plan.rows, "features"))
    assert other.changed == ("x",)
    before, after = (next(v for v in t.trace if v.name == "mean") for t in (plan, other))
    assert before.site == after.site
    assert before.digest != after.digest
    assert plan.calls[0].rows != other.calls[0].rows


def test_rows_evaluated_after_many_epochs_are_still_met(tmp_path: Path) -> None:
    """Else nobody asks whether they are prepared as the training rows are."""
    plan = _followed(tmp_path, None, (*[TRAINED] * (MAX_ROWS_MET // 70 + 1), HELD))
    assert plan.paths is not None
    assert {number for number, _ in plan.paths.eval} == {0}


SERIES = """
import numpy as np

def walk(seed):
    steps = np.random.default_rng(seed).normal(size=(400, 2))
    for i in range(1, 400):
        steps[i] += 0.9 * steps[i - 1]
    return steps

walks = walk(0)
level, wind = walks[:, 0].copy(), walks[:, 1].copy()
x = np.stack([wind, {smoothed}, wind > 0], 1)
y = 2 * level + wind
trained, held = x[10:250], x[250:300]
"""


@pytest.mark.parametrize(
    ("smoothed", "moved"),
    [
        ("np.convolve(level, np.ones(7) / 7, 'same')", 3),
        ("np.convolve(level, np.ones(7) / 7)[:400]", 0),
    ],
)
def test_a_look_ahead_is_seen_in_the_evaluation_that_comes_first(
    tmp_path: Path, smoothed: str, moved: int
) -> None:
    """The trial ends with it: a moment among the rows of a later one would show nothing."""
    first = [("train", slice(10, 250)), ("eval", slice(250, 300))]
    calls = [*first, *first, ("eval", slice(300, 400))]
    script = SERIES.format(smoothed=smoothed)
    plan = _followed(tmp_path, None, calls, script)
    assert plan.future is not None
    assert 270 <= plan.future.rows[0] < 280
    change = RowChange(plan.future.place, plan.count, plan.future.rows, "features")
    told = judge_future(plan, plan.future, _followed(tmp_path, change, first, script))
    assert (told.outcome, told.moved) == ("moved" if moved else "kept", moved)


def test_a_tool_that_traces_already_keeps_its_place() -> None:
    before = sys.gettrace()
    try:
        sys.settrace(lambda frame, event, arg: None)
        watch = LineWatch(lambda: SourceLog(str))
        watch.start()
        assert "another tool" in watch.record().why
    finally:
        sys.settrace(before)
