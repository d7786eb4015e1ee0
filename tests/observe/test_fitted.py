"""What was fitted to which rows is read from values: what the model is given, and what the script
holds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from sawbones.observe.signals import fitted
from sawbones.observe.signals.fitted import FittedLog


def told(
    monkeypatch: pytest.MonkeyPatch, train: np.ndarray, rest: np.ndarray, **held: Any
) -> dict[str, Any] | None:
    """What is recorded when the model is given these rows, while the script holds these
    variables.
    """
    monkeypatch.setattr(fitted, "is_user_file", lambda file: file == "<script>")
    log = FittedLog()
    for _ in range(2):
        for phase, rows in (("train", train), ("eval", rest)):
            for part in torch.tensor(rows, dtype=torch.float32).split(32):
                log.saw([("x", part)], phase)
    exec(
        compile("look(frame())", "<script>", "exec"),
        {"look": log.look, "frame": lambda: sys._getframe(1), **held},
    )
    return log.record()


@pytest.mark.parametrize("known", [400, 300])
@pytest.mark.parametrize("shape", [(6,), (5, 3)])
def test_statistics_of_all_rows_and_of_the_training_rows_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, known: int, shape: tuple[int, ...]
) -> None:
    raw = 40.0 + 7.0 * np.random.default_rng(0).normal(size=(400, *shape))
    axes = tuple(range(len(shape)))
    mean, spread = raw[:known].mean(axes), raw[:known].std(axes)
    rows = (raw - mean) / spread
    found = told(monkeypatch, rows[:300], rows[300:], raw=raw, own={"statistics": [mean, spread]})
    if known == 300:
        assert found is None
        return
    assert found is not None
    assert (found["train_rows"], found["rows"]) == (300, 400)
    assert found["signs"][0]["kind"] == "standardised"
    assert [h["rows"] for h in found["holders"]] == [400]


def test_data_standardised_by_their_maker_leave_no_fit_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(1).normal(size=(400, 4))
    rows = (rows - rows.mean(0)) / rows.std(0)
    found = told(
        monkeypatch, rows[:300], rows[300:], rows=rows, weights=np.ones(4), zeros=np.zeros(4)
    )
    assert found is not None and found["holders"] == []


def test_an_estimator_tells_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    scaler = type("Scaler", (), {"__module__": "sklearn.preprocessing"})()
    scaler.n_samples_seen_ = 400
    rows = np.random.default_rng(2).uniform(size=(400, 3))
    rows[399], rows[398] = 0.0, 1.0
    inner = rows[:398].clip(0.01, 0.99)
    found = told(
        monkeypatch,
        inner[:300],
        np.concatenate([inner[300:], rows[398:]]),
        steps=[("scale", scaler)],
    )
    assert found is not None
    assert found["signs"][0]["kind"] == "ranged"
    assert found["holders"] == [{"cls": "Scaler", "names": ["steps"], "rows": 400}]


@pytest.mark.parametrize("known", [400, 300])
def test_windows_of_a_series_are_looked_up_in_the_array_they_come_from(
    monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    raw = 40.0 + 7.0 * np.random.default_rng(3).normal(size=(400, 3))
    mean, spread = raw[:known].mean(0), raw[:known].std(0)
    series = (raw - mean) / spread
    windows = np.stack([series[i : i + 8] for i in range(390)])
    found = told(
        monkeypatch,
        windows[:290],
        windows[300:],
        series=series,
        mean=mean,
        spread=spread,
        loss=torch.tensor(1.0),
    )
    if known == 300:
        assert found is None
        return
    assert found is not None and found["rows"] == 400
    assert found["holders"] == [
        {"cls": "", "names": ["mean", "spread"], "rows": 400, "assumed": True}
    ]
