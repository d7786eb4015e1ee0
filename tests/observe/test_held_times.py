"""Pairs of dated tables among a script's variables."""

from __future__ import annotations

import sys
import types

import numpy as np
import pandas as pd
import pytest

from sawbones.observe.signals import held_times as signal


@pytest.fixture(autouse=True)
def every_file_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "is_user_file", lambda name: name == __file__)


def _hours(rows: int = 400, zone: str | None = None) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "at": pd.date_range("2021-03-01", periods=rows, freq="h", tz=zone),
            "load": np.arange(rows, dtype=float),
        }
    )


def _here() -> types.FrameType:
    return sys._getframe(1)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_rows_dealt_out_take_turns(zone: str | None) -> None:
    table = _hours(zone=zone)
    order = np.random.default_rng(0).permutation(len(table))
    train, test = table.iloc[order[:300]], table.iloc[order[300:]]
    (pair,) = signal.held_times(_here())
    assert sorted(pair.rows) == [len(test), len(train)]
    assert pair.even == 1.0
    assert pair.turns > 0.8 * pair.turns_if_dealt


def test_a_cut_in_time_has_one_turn() -> None:
    times = np.arange("2021-01-01", "2021-12-31", dtype="datetime64[D]")
    parts = {"train": times[:300], "test": times[300:]}
    pairs = signal.held_times(_here())
    assert len(parts) == 2
    assert [p.turns for p in pairs] == [1]


def test_records_at_any_time_are_uneven_and_shared_moments_are_no_split() -> None:
    seconds = np.sort(np.random.default_rng(1).choice(10_000_000, 400, replace=False))
    dates = np.datetime64("2021-01-01") + seconds.astype("timedelta64[s]")
    orders = [dates[::2], dates[1::2]]
    panel = [pd.concat([_hours(50), _hours(50)]), _hours(60)]
    pairs = signal.held_times(_here())
    assert len(orders) == len(panel)
    assert [p.rows for p in pairs] == [(200, 200)]
    assert pairs[0].even < 0.5
