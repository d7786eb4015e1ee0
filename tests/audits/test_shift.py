"""Planted shifts of every kind at several strengths are found, called by their kind, and nothing
else is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import clean_pair, table

from sawbones import audit
from sawbones.audits.shift.signs import step_in
from sawbones.schema import Report


def faults(report: Report) -> list[str]:
    assert not [blind for blind in report.could_not_look if "itself failed" in blind.why]
    return sorted({finding.fault for finding in report.findings})


@pytest.mark.parametrize("number", range(30))
def test_a_clean_pair_gives_no_finding(number: int) -> None:
    first, second, options = clean_pair(number)
    assert faults(audit.leaks(first, second, **options, model=number % 6 == 0)) == []
    assert faults(audit.shift(first, second, **options)) == []


def world(rows: int, seed: int, rate: float = 0.3) -> pd.DataFrame:
    """A label that x tells much about, features that tell nothing, and a model that is right nine
    times in ten.
    """
    rng = np.random.default_rng(seed)
    frame = table(rows, seed, rate=rate)
    frame["x"] = rng.normal(size=rows) + 1.2 * frame["y"]
    frame["duration"] = rng.lognormal(3, 0.6, rows)
    frame["region"] = rng.choice(["eu", "us", "br", "in"], rows)
    frame["said"] = np.where(rng.random(rows) < 0.9, frame["y"], 1 - frame["y"])
    frame["at"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.uniform(0, 50, rows), unit="D")
    return frame


def changed(**columns: Callable[[pd.DataFrame], object]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.assign(**columns)


def moved_by(size: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return changed(f4=lambda f: f["f4"] + size)


def some(frame: pd.DataFrame, share: float) -> np.ndarray:
    return np.random.default_rng(9).random(len(frame)) < share


SHIFTS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "a mean moves by 0.35": (moved_by(0.35), "deployment.covariate-shift"),
    "a mean moves by 1": (moved_by(1.0), "deployment.covariate-shift"),
    "a mean moves by 5": (moved_by(5.0), "deployment.covariate-shift"),
    "a spread halves": (changed(f4=lambda f: f["f4"] * 0.55), "deployment.covariate-shift"),
    "two inputs move": (
        changed(f4=lambda f: f["f4"] + 0.6, f5=lambda f: f["f5"] - 0.6),
        "deployment.covariate-shift",
    ),
    "a category grows": (
        lambda f: f.assign(region=np.where(some(f, 0.4), "eu", f["region"])),
        "deployment.covariate-shift",
    ),
    "seconds become milliseconds": (
        changed(duration=lambda f: f["duration"] * 1000),
        "deployment.pipeline-drift",
    ),
    "seconds become minutes": (
        changed(duration=lambda f: f["duration"] / 60),
        "deployment.pipeline-drift",
    ),
    "a sign turns": (changed(duration=lambda f: -f["duration"]), "deployment.pipeline-drift"),
    "a tenth goes missing": (
        lambda f: f.assign(f4=f["f4"].mask(some(f, 0.1))),
        "deployment.pipeline-drift",
    ),
    "half goes missing": (
        lambda f: f.assign(f4=f["f4"].mask(some(f, 0.5))),
        "deployment.pipeline-drift",
    ),
    "a category is spelt anew": (
        changed(plan=lambda f: f["plan"].replace("free", "FREE")),
        "deployment.pipeline-drift",
    ),
    "a new category of 3 %": (
        lambda f: f.assign(region=np.where(some(f, 0.03), "jp", f["region"])),
        "deployment.pipeline-drift",
    ),
    "a column is gone": (lambda f: f.drop(columns="f4"), "deployment.pipeline-drift"),
    "a number becomes text": (
        changed(f4=lambda f: "v" + f["f4"].astype(str)),
        "deployment.pipeline-drift",
    ),
    "a column is all empty": (changed(f4=lambda f: np.nan), "deployment.pipeline-drift"),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_of_the_inputs_are_found_and_told_apart(name: str) -> None:
    change, expected = SHIFTS[name]
    report = audit.shift(world(3000, 1), change(world(2000, 2)), label="y")
    assert faults(report) == [expected]
    assert report.verdict == "sick"


@pytest.mark.parametrize("rate", [0.4, 0.6])
def test_a_label_shift_takes_the_inputs_along_and_is_one_finding(rate: float) -> None:
    assert faults(audit.shift(world(3000, 1), world(2000, 2, rate), label="y")) == [
        "deployment.label-shift"
    ]


def test_inputs_that_take_the_label_along_are_a_covariate_shift() -> None:
    def rows(count: int, seed: int, centre: float) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        x = rng.normal(centre, 1, count)
        return pd.DataFrame(
            {
                "x": x,
                "z": rng.normal(size=count),
                "y": (rng.random(count) < 1 / (1 + np.exp(-2 * x))).astype(int),
            }
        )

    assert faults(audit.shift(rows(4000, 1, 0.0), rows(3000, 2, 0.8), label="y")) == [
        "deployment.covariate-shift"
    ]


@pytest.mark.parametrize("with_prediction", [True, False])
def test_a_label_that_no_longer_follows_is_concept_drift(with_prediction: bool) -> None:
    before, after = world(3000, 1), world(3000, 2)
    for frame in (before, after):
        frame["said"] = (frame["x"] > 0.9).astype(int)
    after["y"] = np.random.default_rng(3).permutation(after["y"])
    said = {"prediction": "said"} if with_prediction else {}
    assert faults(audit.shift(before, after, label="y", **said)) == ["deployment.concept-drift"]


def test_without_labels_the_predictions_show_the_shift() -> None:
    before, after = world(3000, 1), world(2000, 2)
    after["said"] = np.where(some(after, 0.3), 1, after["said"])
    report = audit.shift(before, after.drop(columns="y"), label="y", prediction="said")
    assert faults(report) == ["deployment.label-shift"]


@pytest.mark.parametrize("named", [True, False])
def test_the_worst_segment_is_found_with_its_size_and_interval(named: bool) -> None:
    before, after = world(3000, 1), world(4000, 2)
    bad = (after["region"] == "br") & (after["plan"] == "free")
    after["said"] = np.where(bad & some(after, 0.5), 1 - after["y"], after["said"])
    report = audit.shift(
        before, after, label="y", prediction="said", segment=["region", "plan"] if named else []
    )
    assert faults(report) == ["deployment.subgroup"]
    (finding,) = report.findings
    assert finding.params["segment"]["region"] == "br"
    low, high = finding.params["interval"]
    assert low < finding.params["error"] < high
    assert finding.params["rows"] <= (after["region"] == "br").sum()


def test_one_feature_that_jumps_at_one_date_is_the_pipeline() -> None:
    before, after = world(3000, 1), world(3000, 2)
    after["at"] += pd.Timedelta(days=25)
    cut = pd.Timestamp("2024-02-10")
    for frame in (before, after):
        frame["f4"] += 2.0 * (frame["at"] >= cut)
    report = audit.shift(before, after, label="y", time="at", ignore=["at"])
    assert faults(report) == ["deployment.pipeline-drift"]
    assert "2024-02-" in report.findings[0].title


def test_a_trend_is_not_a_step() -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 40)
    assert step_in(np.linspace(0, 1, 40) + noise) is None
    found = step_in(np.where(np.arange(40) < 15, 0, 1) + noise)
    assert found is not None
    assert found[0] == 15


def test_a_significant_difference_without_effect_is_no_finding() -> None:
    rng = np.random.default_rng(0)
    before = pd.DataFrame({"x": rng.normal(0, 1, 200_000)})
    after = pd.DataFrame({"x": rng.normal(0.03, 1, 200_000)})
    assert faults(audit.shift(before, after)) == []
    assert faults(audit.shift(before, after, thresholds={"ks": 0.005})) == [
        "deployment.covariate-shift"
    ]


def test_a_quantity_as_label_and_prediction() -> None:
    def rows(count: int, seed: int, slope: float) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=count)
        return pd.DataFrame(
            {
                "x": x,
                "z": rng.normal(size=count),
                "y": slope * x + rng.normal(0, 0.3, count),
                "said": 1.0 * x,
            }
        )

    assert (
        faults(audit.shift(rows(3000, 1, 1), rows(3000, 2, 1), label="y", prediction="said")) == []
    )
    assert faults(
        audit.shift(rows(3000, 1, 1), rows(3000, 2, -1), label="y", prediction="said")
    ) == ["deployment.concept-drift"]
