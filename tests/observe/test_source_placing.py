"""Rows found again behind a split by row numbers, masks and labels of pandas; folds; scaled labels;
texts in tokens; and rows that are moments of a series.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sawbones.observe.sources.answers import as_asked, follows_answer
from sawbones.observe.sources.containers import change_rows, kind_of, read, scramble_columns
from sawbones.observe.sources.filled import is_filled_for_one_class
from sawbones.observe.sources.lines import LineWatch
from sawbones.observe.sources.log import SourceLog
from sawbones.observe.sources.series import is_interleaved, is_series
from sawbones.schema.sources import Sources

RNG = np.random.default_rng(5)


def _plan(tmp_path: Path, script: str, parts: list[tuple[str, str, str]]) -> Sources:
    """`parts`: phase, expressions for inputs and targets; every training after an evaluation is by
    a model of its own.
    """
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script), encoding="utf-8")
    watch = LineWatch(lambda: SourceLog(lambda name: Path(name).name))
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
    models = [nn.Linear(1, 1) for _ in parts]
    number = 0
    for (phase, given, target), last in zip(parts, ["", *(p[0] for p in parts)], strict=False):
        number += last == "eval"
        rows, wanted = (torch.tensor(np.asarray(eval(e, scope))).float() for e in (given, target))
        watch.log.called([("[0]", rows)], phase, [wanted], models[number])
    return watch.record()


FOLDS = """
import numpy as np

rng = np.random.default_rng(0)
x, y = rng.normal(size=(120, 6)), rng.integers(0, 2, 120)
order = rng.permutation(120)
test, train = order[:40], order[40:]
mean = x[train].mean(0)
xtr, xte = (x[train] - mean) / 2, (x[test] - mean) / 2
"""


def test_rows_behind_a_list_of_row_numbers_are_found_although_they_are_scaled(
    tmp_path: Path,
) -> None:
    parts = [("train", "xtr", "y[train]"), ("eval", "xte", "y[test]")]
    plan = _plan(tmp_path, FOLDS, parts)
    assert (plan.count, plan.trained, plan.evaluated) == (120, 80, 40)


def test_the_next_fold_does_not_count(tmp_path: Path) -> None:
    parts = [("train", "xtr", "y[train]"), ("eval", "xte", "y[test]")]
    plan = _plan(tmp_path, FOLDS, [*parts, ("train", "xte + 1", "y[test]")])
    assert plan.trained == 80


def test_rows_behind_a_mask_are_found(tmp_path: Path) -> None:
    masked = FOLDS.replace(
        "test, train = order[:40], order[40:]", "train = order < 70\ntest = ~train"
    )
    plan = _plan(tmp_path, masked, [("train", "xtr", "y[train]"), ("eval", "xte", "y[test]")])
    assert (plan.trained, plan.evaluated) == (70, 50)


def test_rows_that_are_scaled_on_the_way_to_the_model_are_found(tmp_path: Path) -> None:
    """As by `model(scaler.transform(x[test]))`: no variable holds what the model is given."""
    parts = [("train", "xtr", "y[train]"), ("eval", "(x[test] - mean) * 3", "y[test]")]
    plan = _plan(tmp_path, FOLDS, parts)
    assert (plan.trained, plan.evaluated) == (80, 40)
    other = [parts[0], ("eval", "rng.normal(size=(40, 6))", "y[test]")]
    assert "not found" in _plan(tmp_path, FOLDS, other).why


def test_some_columns_of_a_table_are_found_behind_row_numbers(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    table = """
    import pandas as pd

    table = pd.DataFrame({"count": np.arange(120), "a": x[:, 0], "b": x[:, 1], "kind": y})
    parts = {}
    for name, rows in (("train", train), ("test", test)):
        parts[name] = (table.loc[rows, ["a", "b"]].to_numpy() - 3) / 2
    """
    given = [("train", "parts['train']", "y[train]"), ("eval", "parts['test']", "y[test]")]
    plan = _plan(tmp_path, FOLDS + textwrap.dedent(table), given)
    assert (plan.count, plan.trained, plan.evaluated) == (120, 80, 40)
    assert plan.table is not None and plan.table.names == ("table",)
    assert plan.table.together


def test_a_loop_over_single_rows_does_not_end_the_watching(tmp_path: Path) -> None:
    loop = """
    rows = []
    for i in range(3000):
        rows.append(i)
    x2 = x + 1.0
    """
    parts = [("train", "x2[train]", "y[train]"), ("eval", "x2[test]", "y[test]")]
    plan = _plan(tmp_path, FOLDS + textwrap.dedent(loop), parts)
    assert plan.evaluated == 40


def test_tensors_in_a_data_set_of_a_loader_are_found(tmp_path: Path) -> None:
    loader = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.tensor(x[test] * 2 - mean)), batch_size=10)
    """
    parts = [("train", "xtr", "y[train]")]
    parts += [
        ("eval", f"x[test][{i}:{i + 10}] * 2 - mean", f"y[test][{i}:{i + 10}]")
        for i in (0, 10, 20, 30)
    ]
    one_model = _plan(tmp_path, FOLDS + textwrap.dedent(loader), parts)
    assert (one_model.trained, one_model.evaluated) == (80, 40)


TABLE = """
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
price = pd.DataFrame({"close": rng.normal(size=400).cumsum()}, index=range(1000, 1400))
mean = price["close"].rolling(5{center}).mean()
data = pd.DataFrame({"gap": price["close"] - mean, "step": price["close"].diff()})
data["up"] = (price["close"].shift(-1) > price["close"]).astype(int)
data = data.dropna()
train, test = data[data.index < 1300], data[data.index >= 1300]
"""


def test_labels_of_pandas_lead_back_to_the_first_table_and_its_series(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    features = "[['gap', 'step']].to_numpy()"
    parts = [("train", f"train{features}", "train.up"), ("eval", f"test{features}", "test.up")]
    plan = _plan(tmp_path, TABLE.replace("{center}", ""), parts)
    assert plan.count == 400
    assert plan.future is not None and plan.future.place.names == ("price",)
    assert plan.future.rows[-1] == 399


def test_labels_that_are_scaled_or_numbered_otherwise_are_recognised() -> None:
    values = RNG.normal(size=80).astype(np.float32)
    assert follows_answer(values, (values - 3) / np.float32(2))
    assert not follows_answer(values, values + RNG.normal(0, 0.1, 80).astype(np.float32))
    kinds = np.repeat(np.float32([17, 4, 99]), 20)
    numbers = np.repeat(np.float32([0, 1, 2]), 20)
    assert follows_answer(kinds, numbers)
    assert not follows_answer(kinds, np.roll(numbers, 1))
    assert as_asked(np.float32([4, 99]), kinds, numbers).tolist() == [1, 2]


def test_texts_in_tokens_and_tuples_are_read_and_changed() -> None:
    tokens = [[f"w{i}", "and", f"v{i + 1}x"] for i in range(40)]
    pairs = [(f"text {i} of many", i % 3, float(i) / 7) for i in range(40)]
    assert (kind_of(tokens), kind_of(pairs)) == ("tokens", "tuples")
    assert len(set(read(tokens).hashes.tolist())) == 40  # type: ignore[union-attr]
    for value in (tokens, pairs):
        before = list(value)
        assert change_rows(value, np.arange(30, 40))
        assert value[:30] == before[:30]
        assert all(a != b for a, b in zip(value[30:], before[30:], strict=True))
    assert [p[1] for p in pairs] == [i % 3 for i in range(40)]


def test_a_process_is_a_series_and_sorted_labels_or_a_formula_are_not() -> None:
    walk = RNG.normal(size=(400, 1)).cumsum(0).astype(np.float32)
    assert is_series([walk], None)
    labels = np.repeat(np.float32([0, 1, 2, 3]), 100)
    by_class = (labels[:, None] * 3 + RNG.normal(size=(400, 1))).astype(np.float32)
    assert not is_series([by_class], labels)
    grid = np.linspace(0, 6, 400, dtype=np.float32)[:, None]
    assert not is_series([grid, np.sin(grid), RNG.normal(size=(400, 2)).astype(np.float32)], None)


def test_only_a_split_row_by_row_is_interleaved() -> None:
    order = RNG.permutation(200).tolist()
    assert is_interleaved(order[:150], order[150:])
    assert not is_interleaved(range(150), range(150, 200))


def test_a_column_filled_in_for_one_class_is_told_from_a_cause() -> None:
    label = np.float32(RNG.random(600) < 0.3)
    amounts = RNG.gamma(2, 50, 600).astype(np.float32)
    late = label * amounts * (RNG.random(600) < 0.8)
    assert is_filled_for_one_class(late.astype(np.float32), label) > 100
    cause = np.where(RNG.random(600) < 0.02, amounts, late).astype(np.float32)
    assert not is_filled_for_one_class(cause, label)
    word = (label * (RNG.random(600) < 0.8)).astype(np.float32)  # a flag, no amount
    assert not is_filled_for_one_class(word, label)


def test_columns_are_scrambled_together_and_others_stay() -> None:
    value = RNG.normal(size=(50, 3))
    before = value.copy()
    assert scramble_columns(value, [0, 2])
    assert np.array_equal(value[:, 1], before[:, 1])
    order = [int(np.flatnonzero(before[:, 0] == v)[0]) for v in value[:, 0]]
    assert order != list(range(50))
    assert np.array_equal(value[:, 2], before[order, 2])


def test_the_future_is_changed_in_a_table_and_not_in_an_array_that_is_still_filled(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pandas")
    filled = """
    noise = np.zeros(400)
    for i in range(1, 400):
        noise[i] = 0.8 * noise[i - 1] + rng.normal()
    """
    made = TABLE.replace("{center}", "").replace("rng.normal(size=400).cumsum()", "noise + 5")
    start, rest = made.split("price = ", 1)
    script = start + textwrap.dedent(filled) + "price = " + rest
    features = "[['gap', 'step']].to_numpy()"
    parts = [("train", f"train{features}", "train.up"), ("eval", f"test{features}", "test.up")]
    future = _plan(tmp_path, script, parts).future
    assert future is not None and future.place.names == ("price",)


WINDOWS = """
import numpy as np

rng = np.random.default_rng(3)
level = np.zeros(300)
for day in range(1, 300):
    level[day] = 0.9 * level[day - 1] + rng.normal()
series = np.stack([level, rng.normal(size=300)], axis=1)
y = series[12:, 0]
x = np.stack([series[i : i + 10].reshape(-1) for i in range(288)])
order = rng.permutation(288)
train, test = order[:200], order[200:]
mean = x[train].mean(0)
x = x - mean
"""


def test_windows_dealt_out_at_random_are_changed_themselves_and_not_the_series_they_share(
    tmp_path: Path,
) -> None:
    parts = [("train", "x[train]", "y[train]"), ("eval", "x[test]", "y[test]")]
    dealt = _plan(tmp_path, WINDOWS, parts)
    assert dealt.count == 288
    assert dealt.place is not None
    assert (dealt.place.names, dealt.place.labels) == (("x",), (("y", 0),))
    assert dealt.answers_met == (88, 88)  # asked for in evaluation, given in training
    cut = WINDOWS.replace("rng.permutation(288)", "np.arange(288)")
    plan = _plan(tmp_path, cut, parts)
    assert plan.count == 300
    assert not (plan.answers_met or [0])[0]


EQUAL_PARTS = """
import numpy as np

rng = np.random.default_rng(1)
x, y = rng.normal(3, 2, size=(200, 4)), rng.integers(0, 2, 200)
order = rng.permutation(200)
train, held, last = x[order[:100]], x[order[100:150]], x[order[150:]]
labels = y[order[:100]]
mean, std = train.mean(0), train.std(0)
train, held, last = ((part - mean) / std for part in (train, held, last))
del order
"""


def test_two_parts_of_one_length_are_told_apart_by_their_rows(tmp_path: Path) -> None:
    parts = [("train", "train", "labels"), ("eval", "held", "labels[:50]")]
    plan = _plan(tmp_path, EQUAL_PARTS, parts)
    rng = np.random.default_rng(1)
    rng.normal(3, 2, size=(200, 4)), rng.integers(0, 2, 200)
    assert plan.evaluated == 50
    assert set(plan.rows) <= set(rng.permutation(200)[100:150].tolist())


WANDERING = """
import numpy as np

rng = np.random.default_rng(2)
tide = 30 + np.cumsum(rng.normal(0, 0.3, 600)) + rng.normal(0, 0.2, 600)
mean, std = tide[:400].mean(), tide[:400].std()
{prepared}
def cut(part, first, last):
    return np.stack([part[i : i + 12] for i in range(first, last)])
"""


@pytest.mark.parametrize(
    ("prepared", "alike"),
    [
        ("early = late = (tide - mean) / std; start = 400", True),
        ("early, late, start = (tide[:400] - mean) / std, (tide[400:] - mean) / std, 0", True),
        ("early, late, start = (tide[:400] - mean) / std, tide[400:] / std, 0", False),
        ("early, late, start = (tide[:400] - mean) / std, tide[400:] - mean, 0", False),
    ],
    ids=["at once", "apart, by one fit", "without the mean", "without the spread"],
)
def test_windows_that_are_cut_where_they_are_used_are_known_by_their_series(
    tmp_path: Path, prepared: str, alike: bool
) -> None:
    parts = [
        ("train", "cut(early, 0, 60)", "np.zeros(60)"),
        ("eval", "cut(late, start, start + 40)", "np.zeros(40)"),
    ]
    plan = _plan(tmp_path, WANDERING.format(prepared=prepared), parts)
    assert plan.is_prepared_alike == alike


def test_a_container_one_part_of_which_is_scaled_in_place_decides_nothing(tmp_path: Path) -> None:
    script = """
    import numpy as np

    rng = np.random.default_rng(3)
    x = rng.normal(40, 6, size=(300, 5))
    mean, std = x[:200].mean(0), x[:200].std(0)
    x[:200] = (x[:200] - mean) / std
    done = True
    """
    parts = [("train", "x[:200]", "x[:200, 0]"), ("eval", "x[200:]", "x[200:, 0]")]
    assert not _plan(tmp_path, script, parts).is_prepared_alike


COUNTS = """
import numpy as np
import pandas as pd

rng = np.random.default_rng(4)
seen, shops = rng.integers(0, 60, 400), rng.integers(0, 25, 400)
bought = (rng.random(400) < 0.01 * seen).astype(int)
table = pd.DataFrame({"shop": shops, "seen": seen, "age": rng.integers(18, 70, 400), "y": bought})
table["rate"] = table.groupby("shop")["y"].transform("mean")
order = rng.permutation(400)
first, rest = order[:300], order[300:]
given = ["seen", "age", "rate"]
spread = table[given].iloc[first].std().to_numpy()
train = table[given].iloc[first].to_numpy() / spread
held = table[given].iloc[rest].to_numpy() / spread
labels = table["y"].to_numpy()[first]
"""


def test_rows_of_counts_and_rates_are_found_by_all_of_their_columns(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    parts = [("train", "train", "labels"), ("eval", "held", "labels[:100]")]
    plan = _plan(tmp_path, COUNTS, parts)
    assert plan.count == 400
    assert plan.evaluated >= 95
    assert plan.place is not None and plan.place.labels[-1][0] in ("bought", "table")


def test_rows_that_are_alike_hide_no_labels(tmp_path: Path) -> None:
    """Rows of few counts repeat, with one label here and the other there."""
    script = """
    import numpy as np

    rng = np.random.default_rng(6)
    x, y = rng.integers(0, 12, size=(500, 3)), rng.integers(0, 2, 500)
    order = rng.permutation(500)
    first, rest = order[:380], order[380:]
    train, held = x[first] / 4, x[rest] / 4
    labels = y[first]
    """
    parts = [("train", "train", "labels"), ("eval", "held", "labels[:120]")]
    plan = _plan(tmp_path, script, parts)
    assert plan.place is not None and plan.place.labels == (("y", 0),)


BY_HAND = """
import numpy as np

rng = np.random.default_rng(6)

def smooth(x):
    return np.convolve(x, np.ones(6) / 6)[: len(x)]

def made():
    a = rng.normal(size=900).round(4)
    again = a.copy()
    rain = np.maximum(rng.normal(size=900) - 1, 0)
    x = np.stack([a, smooth(rain), smooth(rng.normal(size=900))], axis=1)
    y = x.sum(1) + rng.normal(size=900)
    return x[40:], y[40:]

x, y = made()
order = rng.permutation(860)
train, test = order[:600], order[600:]
x = (x - x[train].mean(0)) / x[train].std(0)
y = (y - y[train].mean()) / y[train].std()
"""


def test_two_rows_of_a_long_column_may_be_equal_by_chance(tmp_path: Path) -> None:
    """A copy of the column is that column all the same; and a column that the model is given is no
    column of groups, though the rows before the first that it meets are not scaled.
    """
    parts = [("train", "x[train]", "y[train]"), ("eval", "x[test]", "y[test]")]
    plan = _plan(tmp_path, BY_HAND, parts)
    assert (plan.why, plan.count, plan.trained, plan.evaluated) == ("", 900, 600, 260)
    assert [s.kind for s in plan.strangers] in ([], ["time"])


PIECE_BY_PIECE = """
import numpy as np

rng = np.random.default_rng(7)

def beats(kind):
    t = np.linspace(0, 1, 30)
    shape = np.sin(6 * t + rng.normal()) + kind * t
    beats = []
    for _ in range(20):
        beats.append(shape + rng.normal(0, 0.1, 30))
    return beats

x, y, patient = [], [], []
for number in range(60):
    own = beats(number % 2)
    x += own
    y += [number % 2] * len(own)
    patient += [number] * len(own)
x, y, patient = np.array(x), np.array(y), np.array(patient)
order = rng.permutation(len(x))
train, test = order[:800], order[800:]
"""


def test_data_that_are_made_piece_by_piece_are_followed_to_the_whole(tmp_path: Path) -> None:
    parts = [("train", "x[train]", "y[train]"), ("eval", "x[test]", "y[test]")]
    plan = _plan(tmp_path, PIECE_BY_PIECE, parts)
    assert (plan.why, plan.count) == ("", 1200)
    assert ("patient", "group") in [(s.column, s.kind) for s in plan.strangers]
