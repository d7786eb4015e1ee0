"""Drift day by day: alerts, their rate on data that did not move, and the state file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from sawbones import audit
from sawbones.cli.main import main


def _days(num: int, seed: int, first: str = "2026-01-01", moved_from: int = 10**6) -> Any:
    rng = np.random.default_rng(seed)
    frames = []
    for day in range(num):
        rows = int(rng.integers(150, 250))
        start = pandas.Timestamp(first) + pandas.Timedelta(days=day)
        frames.append(
            pandas.DataFrame(
                {
                    "at": start + pandas.to_timedelta(rng.uniform(0, 86399, rows), unit="s"),
                    "amount": rng.normal(2.0 if day >= moved_from else 0.0, 1.0, rows),
                    "age": rng.normal(rng.normal(40, 1), 10, rows),  # days differ by themselves
                    "branch": rng.choice(list("abcd"), rows),
                }
            )
        )
    return pandas.concat(frames, ignore_index=True)


def test_the_day_of_a_jump_and_its_column_are_named() -> None:
    report = audit.shift(_days(30, 0), _days(8, 1, "2026-02-01", 5), time="at", by="day")
    assert report.verdict == "sick"
    (found,) = report.findings
    assert found.fault == "deployment.covariate-shift"
    assert found.params["columns"] == ["amount"]
    assert found.params["windows"] == ["2026-02-06", "2026-02-07", "2026-02-08"]


def test_days_that_did_not_move_alert_no_oftener_than_said() -> None:
    report = audit.shift(
        _days(40, 2), _days(60, 3, "2026-03-01"), time="at", by="day", false_alarms=0.05,
        thresholds={"window": 0.0},
    )  # fmt: skip
    windows = report.environment["audit"]["windows"]
    assert len(windows) == 60
    assert sum(w["score"] > w["limit"] for w in windows) <= 8  # 3 expected; more than 8: 1 in 300
    assert "one in 20 would alert" in " ".join(report.notes)


def test_a_short_reference_says_what_it_cannot_promise() -> None:
    report = audit.shift(_days(9, 4), _days(3, 5, "2026-03-01"), time="at", by="day")
    assert report.environment["audit"]["false_alarm_rate"] == pytest.approx(0.1)
    assert any("one in 10 would alert: the reference has 9 windows" in n for n in report.notes)


def test_with_a_state_each_day_alerts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _days(20, 6).to_parquet("reference.parquet")
    days = _days(6, 7, "2026-02-01", 4)
    call = ["audit", "shift", "--reference", "reference.parquet", "--current", "now.parquet"]
    call += ["--time", "at", "--by", "day", "--state", "drift.json", "--quiet"]

    def status(rows: Any) -> Any:
        rows.to_parquet("now.parquet")
        with pytest.raises(SystemExit) as ended:
            main(call)
        return ended.value.code

    early = days[days["at"] < "2026-02-04"]
    assert status(early) == 0
    assert status(early) == 4  # nothing new
    assert status(days) == 1
    assert status(days) == 4
    told = json.loads(Path("drift.json").read_text())
    assert [day for day, w in sorted(told["windows"].items()) if w["alert"]] == [
        "2026-02-05",
        "2026-02-06",
    ]
    with pytest.raises(SystemExit) as ended:
        main([*call[:-5], "--by", "week", "--state", "drift.json"])
    assert ended.value.code == 2
    assert "was written for --by day" in capsys.readouterr().err
