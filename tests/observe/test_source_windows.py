"""Windows of a series that was cut in two: where they end, where the series enters, and what moves
when it is changed from a moment on.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sawbones.observe.sources.lines import LineWatch
from sawbones.observe.sources.log import SourceLog
from sawbones.schema.sources import Future, Moved, RowChange, Sources
from sawbones.trials.source_change import judge_features, judge_future

FORECAST = """
import numpy as np

rng = np.random.default_rng(3)
level = np.zeros(400)
for hour in range(1, 400):
    level[hour] = 0.9 * level[hour - 1] + rng.normal()
load = level + rng.normal(size=400)
smooth = np.convolve(load, np.ones(5) / 5{ending}
scaled = (smooth - load[:{fitted}].mean()) / load[:{fitted}].std()

def frames(lo, hi):
    x = np.stack([scaled[t - 8 : t] for t in range(lo + 8, hi)])
    return x, load[lo + 8 : hi]

xtr, ytr = frames(0, 280)
xte, yte = frames(280, 400)
"""
PAST, CENTRED = ")[:400]", ', "same")'
LOAD, SMOOTH = 8, 9  # lines

HANDED_OVER = """
import numpy as np

def read():
    rng = np.random.default_rng(4)
    ret = rng.normal(size=(200, 3))
    for day in range(1, 200):
        ret[day] += 0.5 * ret[day - 1]
    return np.cumsum(ret, axis=0)

quotes = read()
scaled = quotes - quotes[:{fitted}].mean(0)

def windows(lo, hi):
    starts = range(lo, hi - 12)
    x = np.concatenate([scaled[i : i + 8].T for i in starts])
    y = np.concatenate([scaled[i + 11] > scaled[i + 7] for i in starts])
    return x, y

xtr, ytr = windows(0, 120)
xte, yte = windows(120, 200)
"""


def _followed(tmp_path: Path, script: str, change: RowChange | None = None) -> Sources:
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
    for phase, part in (("train", "tr"), ("eval", "te")):
        rows, wanted = (torch.tensor(np.asarray(scope[f"{v}{part}"])).float() for v in "xy")
        watch.log.called([("[0]", rows)], phase, [wanted])
    return watch.record()


def _judged(tmp_path: Path, script: str) -> tuple[Moved, Moved]:
    plan = _followed(tmp_path, script)
    windows = plan.windows
    assert windows is not None
    change = RowChange(windows.place, windows.count, windows.rows, "features")
    other = _followed(tmp_path, script, change)
    seen = Sources(
        rows=windows.rows,
        early=windows.early,
        row_of=windows.row_of,
        calls=plan.calls,
        trace=windows.trace,
    )
    future = Future(windows.place, windows.rows, windows.trace)
    return judge_features(seen, other), judge_future(seen, future, other)


def test_the_series_enters_where_what_is_asked_for_is_there(tmp_path: Path) -> None:
    windows = _followed(tmp_path, FORECAST.format(ending=PAST, fitted=280)).windows
    assert windows is not None
    assert (windows.place.line, windows.count, windows.ahead) == (LOAD, 400, 1)
    assert "load" in windows.place.names
    assert len(windows.early) == 272


def test_a_centred_mean_moves_windows_from_right_before_the_moment(tmp_path: Path) -> None:
    features, future = _judged(tmp_path, FORECAST.format(ending=CENTRED, fitted=280))
    assert features.outcome == "kept"
    assert (future.outcome, future.moved, future.reach) == ("moved", 2, 2)
    assert future.site is not None and future.site.line == SMOOTH


def test_a_mean_of_the_past_moves_nothing(tmp_path: Path) -> None:
    features, future = _judged(tmp_path, FORECAST.format(ending=PAST, fitted=280))
    assert (features.outcome, future.outcome) == ("kept", "kept")


def test_a_fit_over_the_whole_series_moves_training_windows(tmp_path: Path) -> None:
    features, _ = _judged(tmp_path, FORECAST.format(ending=PAST, fitted=400))
    assert (features.outcome, features.name) == ("moved", "scaled")


def test_a_series_that_a_function_hands_over_is_changed_there(tmp_path: Path) -> None:
    """Whatever is asked for: which way the price went is in no column."""
    whole, part = (HANDED_OVER.format(fitted=rows) for rows in (200, 120))
    windows = _followed(tmp_path, whole).windows
    assert windows is not None and windows.place.names == ("quotes",)
    assert _judged(tmp_path, whole)[0].outcome == "moved"
    assert _judged(tmp_path, part)[0].outcome == "kept"


def test_windows_of_a_series_that_is_made_where_it_is_used_are_not_tried(tmp_path: Path) -> None:
    """Nothing says where making it up ends."""
    script = FORECAST.format(ending=PAST, fitted=280).replace("return x, load", "return x, level")
    made_up = script.replace("level[lo + 8 : hi]", "rng.normal(size=hi - lo - 8)")
    assert _followed(tmp_path, made_up).windows is None


APART = """
import numpy as np

rng = np.random.default_rng(3)
level = np.zeros(700)
for hour in range(1, 700):
    level[hour] = 0.9 * level[hour - 1] + rng.normal()
load = level + rng.normal(size=700)
table = np.stack([load, np.convolve(load, np.ones(5) / 5{ending}], axis=1)

def frames(part):
    part = (part - table[:450].mean(0)) / table[:450].std(0)
    x = [part[t - 8 : t] for t in range(8, len(part) - 2)]
    y = [part[t : t + 3, 0] for t in range(8, len(part) - 2)]
    return np.stack(x), np.stack(y)

xtr, ytr = frames(table[:450])
xte, yte = frames(table[474:])
"""


def test_parts_of_a_series_may_be_scaled_apart_and_several_hours_asked_for(tmp_path: Path) -> None:
    """Windows are found in the parts, the parts in the series, and the first of what is asked for
    right behind the end.
    """
    windows = _followed(tmp_path, APART.format(ending=PAST.replace("400", "700"))).windows
    assert windows is not None
    assert (windows.place.line, windows.count, windows.ahead) == (LOAD, 700, 1)
    _, future = _judged(tmp_path, APART.format(ending=CENTRED))
    assert (future.outcome, future.reach) == ("moved", 2)
    _, future = _judged(tmp_path, APART.format(ending=PAST.replace("400", "700")))
    assert future.outcome == "kept"
