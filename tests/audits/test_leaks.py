"""Planted leaks of every kind at several strengths are found, and nothing else is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import altered, table, texts

from sawbones import audit
from sawbones.schema import Report

Pair = tuple[pd.DataFrame, pd.DataFrame]


def faults(report: Report) -> set[str]:
    failed = [blind for blind in report.could_not_look if "itself failed" in blind.why]
    assert not failed
    return {finding.fault for finding in report.findings}


def contaminated(share: float) -> Pair:
    train, test = table(1500, 1), table(800, 2)
    shared = train.sample(round(share * 800), random_state=0)
    return train, pd.concat([test.iloc[len(shared) :], shared]).sample(frac=1, random_state=1)


@pytest.mark.parametrize("share", [0.005, 0.01, 0.1, 0.5])
def test_contamination_is_found_from_a_few_rows_on(share: float) -> None:
    report = audit.leaks(*contaminated(share), label="y", model=False)
    assert faults(report) == {"evaluation.leak-contamination"}
    (finding,) = report.findings
    assert finding.status == "proven"
    assert finding.params["share"] == pytest.approx(share, abs=1e-9)
    assert finding.params["examples"]


def test_a_test_set_that_is_the_training_set_is_a_wrong_split() -> None:
    assert faults(audit.leaks(*contaminated(0.95), label="y", model=False)) == {
        "evaluation.wrong-split"
    }


def test_rows_are_compared_after_normalisation() -> None:
    train, test = table(400, 1), table(400, 2)
    copied = train.iloc[:40].copy()
    copied["plan"] = "  " + copied["plan"].str.upper() + " "
    copied["visits"] = copied["visits"].astype(float)
    report = audit.leaks(train, pd.concat([test, copied]), model=False)
    assert faults(report) == {"evaluation.leak-contamination"}


def test_equal_rows_of_a_table_with_few_forms_prove_nothing() -> None:
    rng = np.random.default_rng(0)

    def few(rows: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "a": rng.choice(list("xyz"), rows),
                "b": rng.choice(list("uvw"), rows),
                "y": rng.integers(0, 2, rows),
            }
        )

    report = audit.leaks(few(2000), few(1000), label="y", model=False)
    assert faults(report) == set()
    assert any("so few forms" in blind.why for blind in report.could_not_look)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_near_duplicate_texts_are_found_and_verified(share: float) -> None:
    train, test = texts(400, 1), texts(200, 2)
    count = round(share * 200)
    test[:count] = [altered(train[i], 0.03, i) for i in range(count)]
    report = audit.leaks(
        pd.DataFrame({"body": train}), pd.DataFrame({"body": test}), text="body", model=False
    )
    assert faults(report) == {"evaluation.leak-contamination"}
    (finding,) = report.findings
    similar = [
        len(runs(a) & runs(b)) / len(runs(a) | runs(b))
        for a, b in zip(train[:count], test[:count], strict=True)
    ]
    assert finding.params["share"] == pytest.approx(sum(s >= 0.8 for s in similar) / 200)


def runs(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + 3]) for i in range(len(words) - 2)}


def test_redacted_examples_show_no_word_of_the_data() -> None:
    train, test = texts(200, 1), texts(100, 2)
    test[:10] = [altered(train[i], 0.03, i) for i in range(10)]
    report = audit.leaks(
        pd.DataFrame({"body": train}), pd.DataFrame({"body": test}), model=False, redact=True
    )
    (finding,) = report.findings
    shown = " ".join([*finding.params["examples"], *(e.text for e in finding.evidence)])
    assert not set(train[0].split()) & set(shown.split())


def edited(rows: pd.DataFrame, how: str) -> pd.DataFrame:
    """Copies that no hash of the row finds again."""
    rng, rows = np.random.default_rng(0), rows.copy()
    for name in [f"f{i}" for i in range(6)] + ["gap", "price"]:
        noise = 0.002 * rows[name].std() * rng.normal(size=len(rows))
        rows[name] = (
            rows[name].round(2)
            if how == "rounded"
            else rows[name] + noise
            if how == "noised"
            else rows[name]
        )
    if how == "one column changed":
        rows["city"] = "elsewhere"
    return rows


@pytest.mark.parametrize("share", [0.02, 0.2])
@pytest.mark.parametrize("how", ["rounded", "noised", "one column changed"])
def test_rows_that_nearly_repeat_others_are_found(how: str, share: float) -> None:
    train, test = table(1500, 1), table(800, 2)
    count = round(share * 800)
    report = audit.leaks(
        train,
        pd.concat([test.iloc[count:], edited(train.iloc[:count], how)]),
        label="y",
        model=False,
    )
    assert faults(report) == {"evaluation.leak-contamination"}
    (finding,) = report.findings
    assert 0.85 * share <= finding.params["share"] <= share
    assert finding.params["examples"]


def test_a_sample_is_looked_up_where_there_are_many_rows_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sawbones.audits.near_rows.MOST_ROWS", 300)
    train, test = table(1500, 1), table(800, 2)
    report = audit.leaks(
        train,
        pd.concat([test.iloc[80:], edited(train.iloc[:80], "noised")]),
        label="y",
        model=False,
    )
    assert faults(report) == {"evaluation.leak-contamination"}
    assert 0.05 <= report.findings[0].params["share"] <= 0.15
    assert any(
        "of the 800 rows of test, one in 3, against all of train" in note for note in report.notes
    )


def test_rows_of_one_customer_are_alike_by_nature() -> None:
    customers = table(100, 3)

    def orders(count: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        rows = customers.iloc[rng.integers(0, 100, count)].reset_index(drop=True)
        return rows.assign(amount=rng.normal(size=count))

    report = audit.leaks(orders(1500, 1), orders(800, 2), model=False)
    assert faults(report) == set()
    assert any("no sign of copies" in note for note in report.notes)


def leaking(make: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Pair:
    pair = []
    for seed in (1, 2):
        frame = table(1500, seed)
        frame["leak"] = make(frame["y"].to_numpy(), np.random.default_rng(seed))
        pair.append(frame)
    return pair[0], pair[1]


TARGETS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "the label itself": lambda y, rng: y * 1.0,
    "noise of a fifth": lambda y, rng: y + rng.normal(0, 0.2, len(y)),
    "AUC 0.98": lambda y, rng: y + rng.normal(0, 0.35, len(y)),
    "skewed, so that the correlation is small": lambda y, rng: np.exp(
        3 * (y + rng.normal(0, 0.25, len(y)))
    ),
    "a U-shape": lambda y, rng: (
        np.where(y == 1, rng.choice([-3, 3], len(y)), 0) + rng.normal(0, 0.5, len(y))
    ),
    "missing where the label is 1": lambda y, rng: np.where(
        y == 1, np.nan, rng.normal(size=len(y))
    ),
    "a category": lambda y, rng: np.where(
        rng.random(len(y)) < 0.98, np.where(y == 1, "paid", "open"), "other"
    ),
}


@pytest.mark.parametrize("name", TARGETS)
def test_target_leaks_are_found_by_what_the_feature_gives_alone(name: str) -> None:
    report = audit.leaks(*leaking(TARGETS[name]), label="y", model=False)
    assert faults(report) == {"evaluation.leak-target"}
    assert [f.params["column"] for f in report.findings] == ["leak"]
    assert report.findings[0].params["score"] >= 0.95


@pytest.mark.parametrize("seed", range(4))
def test_a_target_leak_is_found_in_few_rows_too(seed: int) -> None:
    """AUC 0.968 of the population; ranked by the rates of bins with nine rows in each, it falls
    below 0.95.
    """
    train, test = table(1200, 900 * seed), table(900, 900 * seed + 1)
    rng = np.random.default_rng(0)
    train, test = (f.assign(leak=f["y"] + rng.normal(0, 0.38, len(f))) for f in (train, test))
    report = audit.leaks(train, test, label="y", model=False)
    assert [f.params["column"] for f in report.findings] == ["leak"]


def test_a_good_honest_feature_is_no_leak() -> None:
    report = audit.leaks(
        *leaking(lambda y, rng: y + rng.normal(0, 0.6, len(y))), label="y", model=False
    )
    assert faults(report) == set()


def test_a_leak_that_needs_a_second_feature_is_found_by_the_model() -> None:
    pair = []
    for seed in (1, 2):
        frame = table(2500, seed, rate=0.5)
        rng = np.random.default_rng(seed)
        frame["key"] = rng.normal(size=len(frame))
        frame["locked"] = frame["y"] + frame["key"] + rng.normal(0, 0.05, len(frame))
        pair.append(frame)
    report = audit.leaks(*pair, label="y")
    assert faults(report) == {"evaluation.leak-target"}
    assert report.findings[0].params["column"] in ("key", "locked")


def test_a_target_leak_of_a_quantity_is_found_by_r2() -> None:
    pair = []
    for seed in (1, 2):
        frame = table(1500, seed)
        rng = np.random.default_rng(seed)
        frame["y"] = rng.gamma(2, 10, len(frame))
        frame["leak"] = np.sqrt(frame["y"]) + rng.normal(0, 0.05, len(frame))
        pair.append(frame)
    report = audit.leaks(*pair, label="y", model=False)
    assert faults(report) == {"evaluation.leak-target"}
    assert {f.params["column"] for f in report.findings} == {"leak"}


@pytest.mark.parametrize("shared", [1, 20])
def test_shared_groups_are_counted(shared: int) -> None:
    train, test = table(1000, 1), table(500, 2)
    train["user"], test["user"] = np.arange(1000) % 100, 100 + np.arange(500) % 50
    test.loc[: shared - 1, "user"] = np.arange(shared)
    report = audit.leaks(train, test, group="user", model=False)
    assert faults(report) == {"evaluation.leak-group"}
    assert report.findings[0].params["share"] == pytest.approx(shared / 500)


@pytest.mark.parametrize("overlap", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["timestamp", "text", "number"])
def test_training_rows_from_the_future_are_found(overlap: float, kind: str) -> None:
    train, test = table(600, 1), table(300, 2)
    rng = np.random.default_rng(0)
    days = [rng.uniform(0, 100, 600), rng.uniform(100 - 100 * overlap, 200 - 100 * overlap, 300)]
    for frame, day in zip((train, test), days, strict=True):
        moment = pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")
        frame["at"] = {
            "timestamp": moment,
            "text": moment.strftime("%Y-%m-%d %H:%M:%S"),
            "number": day,
        }[kind]
    assert faults(audit.leaks(train, test, time="at", model=False)) == {"evaluation.leak-temporal"}


def test_a_split_by_time_is_clean() -> None:
    train, test = table(600, 1), table(300, 2)
    train["at"] = pd.date_range("2024-01-01", periods=600, freq="h")
    test["at"] = pd.date_range("2024-02-01", periods=300, freq="h")
    assert faults(audit.leaks(train, test, label="y", time="at", model=False)) == set()


def test_the_cost_of_a_random_split_in_time_is_measured() -> None:
    rng = np.random.default_rng(0)
    rows = 3000
    at = rng.permutation(rows).astype(float)
    frame = pd.DataFrame(
        {"at": at, "x": at / 300 + rng.normal(0, 0.05, rows), "z": rng.normal(size=rows)}
    )
    frame["y"] = (rng.random(rows) < (0.1 + 0.8 * (np.floor(at / 300) % 2))).astype(int)
    report = audit.leaks(frame.iloc[:2000], frame.iloc[2000:], label="y", time="at")
    (finding,) = report.findings
    assert finding.fault == "evaluation.leak-temporal"
    assert finding.status == "proven"
    assert any("split by time" in e.text for e in finding.evidence)


@pytest.mark.parametrize("rows", [200, 5000])
@pytest.mark.parametrize("ddof", [0, 1])
def test_a_feature_standardised_over_both_splits_is_found(rows: int, ddof: int) -> None:
    train, test = table(rows, 1), table(rows // 2, 2)
    both = pd.concat([train, test])["f1"]
    for frame in (train, test):
        frame["f1"] = (frame["f1"] - both.mean()) / both.std(ddof=ddof)
    report = audit.leaks(train, test, label="y", model=False)
    assert faults(report) == {"evaluation.leak-preprocessing"}
    assert report.findings[0].params["columns"] == ["f1"]


def test_a_feature_standardised_by_its_training_part_is_clean() -> None:
    train, test = table(1000, 1), table(500, 2)
    mean, spread = train["f1"].mean(), train["f1"].std()
    for frame in (train, test):
        frame["f1"] = (frame["f1"] - mean) / spread
    assert faults(audit.leaks(train, test, label="y", model=False)) == set()


def test_features_scaled_to_the_range_of_both_are_found() -> None:
    train, test = table(300, 1), table(300, 2)
    for name in ("f1", "f2", "price"):
        both = pd.concat([train, test])[name]
        for frame in (train, test):
            frame[name] = (frame[name] - both.min()) / (both.max() - both.min())
    assert faults(audit.leaks(train, test, model=False)) == {"evaluation.leak-preprocessing"}


@pytest.mark.parametrize("on", ["train", "both"])
def test_a_scaler_file_tells_what_it_was_fitted_on(tmp_path: Path, on: str) -> None:
    import joblib
    from sklearn.preprocessing import StandardScaler

    train, test = table(500, 1), table(250, 2)
    names = ["f0", "f1", "f2"]
    rows = train if on == "train" else pd.concat([train, test])
    joblib.dump(StandardScaler().fit(rows[names]), tmp_path / "scaler.pkl")
    report = audit.leaks(train, test, fitted=str(tmp_path / "scaler.pkl"), model=False)
    assert faults(report) == ({"evaluation.leak-preprocessing"} if on == "both" else set())


def test_a_vocabulary_with_words_of_the_test_texts_is_found(tmp_path: Path) -> None:
    train, test = texts(100, 1), [f"{text} zebra quagga okapi" for text in texts(50, 2)]
    words = sorted({word for text in [*train, *test] for word in text.split()})
    (tmp_path / "vocabulary.txt").write_text("\n".join(words))
    frames = pd.DataFrame({"body": train}), pd.DataFrame({"body": test})
    report = audit.leaks(*frames, text="body", fitted=str(tmp_path / "vocabulary.txt"), model=False)
    assert "evaluation.leak-preprocessing" in faults(report)


def test_doubled_and_contradicting_rows_are_found() -> None:
    train, test = table(1000, 1), table(500, 2)
    doubled = train.iloc[:30].copy()
    contradicting = train.iloc[30:60].copy()
    contradicting["y"] = 1 - contradicting["y"]
    assert faults(audit.leaks(pd.concat([train, doubled]), test, label="y", model=False)) == {
        "data.degenerate-samples"
    }
    both = faults(audit.leaks(pd.concat([train, contradicting]), test, label="y", model=False))
    assert both == {"data.degenerate-samples", "data.labels-misaligned"}


def test_a_validation_split_is_compared_with_both_others() -> None:
    train, valid, test = table(600, 1), table(300, 2), table(300, 3)
    test = pd.concat([test, valid.iloc[:30]])
    report = audit.leaks(train, test, valid=valid, model=False)
    assert [f.params["splits"] for f in report.findings] == [["valid", "test"]]


def test_a_raised_threshold_silences_a_finding() -> None:
    pair = leaking(TARGETS["AUC 0.98"])
    assert (
        faults(
            audit.leaks(
                *pair, label="y", model=False, thresholds={"auc": 0.995, "correlation": 0.999}
            )
        )
        == set()
    )
