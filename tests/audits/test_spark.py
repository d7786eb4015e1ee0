"""The same audits on Spark: findings identical to DuckDB's. Needs pyspark and Java."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import altered, table, texts

from sawbones import audit
from sawbones.schema import Report

pytest.importorskip("pyspark", reason="needs pyspark")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
    pytest.mark.filterwarnings("ignore"),  # PySpark speaks of pandas 3 on every call
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def spark():
    import ibis
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.default.parallelism": "1",
    }
    builder = SparkSession.builder.master("local[1]").appName("audit tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield ibis.pyspark.connect(session)
    session.stop()


def said(report: Report) -> list[tuple[object, ...]]:
    failed = [blind for blind in report.could_not_look if "itself failed" in blind.why]
    assert not failed, failed
    return [
        (
            f.fault,
            f.status,
            f.title,
            tuple(
                (e.text, None if e.value is None else round(e.value, 3))
                for e in f.evidence
                if e.signal != "rows"
            ),
        )
        for f in report.findings
    ]


def rows(count: int, seed: int) -> pd.DataFrame:
    frame = table(count, seed)[["f0", "f1", "gap", "plan", "visits", "y"]]
    rng = np.random.default_rng(seed)
    frame["user"] = rng.integers(0, 50, count) + 40 * seed
    frame["leak"] = frame["y"] + rng.normal(0, 0.2, count)
    return frame


def both(spark, call, *data: object, **options: object) -> Report:
    """The audit on both engines; what Spark says is what DuckDB says."""
    here, there = call(*data, **options), call(*data, **options, engine=spark)
    assert said(there) == said(here)
    assert [blind.why for blind in there.could_not_look] == [
        blind.why for blind in here.could_not_look
    ]
    assert there.environment["audit"]["engine"] == "pyspark"
    return here


def faults(report: Report) -> set[str]:
    return {f.fault for f in report.findings}


def test_leaks_are_the_same_on_both_engines(spark, tmp_path: Path) -> None:
    train, test = rows(300, 1), rows(200, 2)
    # Shared rows, and within the test part doubled ones that contradict each other.
    test = pd.concat([test, train.iloc[:12], test.iloc[:9].assign(y=lambda f: 1 - f["y"])])
    paths = []
    for name, frame in (("train", train), ("test", test)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        paths.append(str(tmp_path / f"{name}.parquet"))
    found = both(spark, audit.leaks, *paths, label="y", group="user", model=False)
    assert faults(found) == {
        "evaluation.leak-contamination",
        "evaluation.leak-group",
        "evaluation.leak-target",
        "data.degenerate-samples",
        "data.labels-misaligned",
    }


def test_near_rows_and_near_texts_are_the_same_on_both_engines(spark) -> None:
    train, test = table(300, 1), table(150, 2)
    near = train.iloc[:20].assign(**{f"f{i}": train[f"f{i}"].round(2) for i in range(6)})
    found = both(spark, audit.leaks, train, pd.concat([test, near]), model=False)
    assert [f.title.split(" % ")[1] for f in found.findings] == [
        "of test nearly repeats rows of train"
    ]
    some, others = texts(120, 1), texts(60, 2)
    others[:8] = [altered(some[i], 0.03, i) for i in range(8)]
    found = both(
        spark,
        audit.leaks,
        pd.DataFrame({"body": some}),
        pd.DataFrame({"body": others}),
        text="body",
        model=False,
    )
    assert faults(found) == {"evaluation.leak-contamination"}


def test_time_and_preprocessing_are_the_same_on_both_engines(spark, tmp_path: Path) -> None:
    train, test = rows(500, 1).drop(columns="leak"), rows(300, 2).drop(columns="leak")
    whole = pd.concat([train, test])["f1"]
    for number, frame in enumerate((train, test)):
        frame["f1"] = (frame["f1"] - whole.mean()) / whole.std(ddof=0)
        frame["at"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
            np.arange(len(frame)) * 2 + 300 * number, unit="h"
        )
        frame["day"] = frame["at"].dt.strftime("%Y-%m-%d")
    found = both(spark, audit.leaks, train, test, label="y", time="at")
    assert faults(found) == {"evaluation.leak-temporal", "evaluation.leak-preprocessing"}
    found = both(
        spark, audit.leaks, train, test, time="day", ignore=["at", "user", "f1"], model=False
    )
    assert faults(found) == {"evaluation.leak-temporal"}
    means = {"mean": {"f0": float(pd.concat([train, test])["f0"].mean())}}
    (tmp_path / "scaler.json").write_text(json.dumps(means))
    found = both(
        spark,
        audit.leaks,
        train,
        test,
        fitted=str(tmp_path / "scaler.json"),
        ignore=["f1"],
        model=False,
    )
    assert faults(found) == {"evaluation.leak-preprocessing"}


def test_shifts_are_the_same_on_both_engines(spark) -> None:
    before, after = (
        rows(400, 1).drop(columns=["user", "leak"]),
        rows(300, 2).drop(columns=["user", "leak"]),
    )
    after["f1"] += 1.0
    after["plan"] = after["plan"].replace("free", "gratis")
    found = both(spark, audit.shift, before, after, label="y")
    assert faults(found) == {"deployment.covariate-shift", "deployment.pipeline-drift"}


def test_segments_predictions_and_dates_are_the_same_on_both_engines(spark) -> None:
    frames = []
    for seed, late in ((1, False), (2, True)):
        rng = np.random.default_rng(seed)
        frame = table(600, seed)[["f0", "f3", "plan", "visits", "y"]].assign(
            region=rng.choice(["eu", "us", "br"], 600)
        )
        frame["at"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
            rng.uniform(0, 50, 600) + 25 * late, unit="D"
        )
        frame["f3"] += 3.0 * (frame["at"] >= pd.Timestamp("2024-02-10"))
        wrong = rng.random(600) < np.where((frame["region"] == "br") & late, 0.6, 0.05)
        frame["said"] = np.where(wrong, 1 - frame["y"], frame["y"])
        frames.append(frame)
    found = both(
        spark,
        audit.shift,
        *frames,
        label="y",
        prediction="said",
        segment=["region", "plan"],
        time="at",
        ignore=["at"],
    )
    assert faults(found) >= {"deployment.pipeline-drift", "deployment.subgroup"}


def test_tokens_and_one_data_set_are_the_same_on_both_engines(spark, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.train_from_iterator(
        texts(100, 1),
        trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False),
    )
    made.save(str(tmp_path / "tokenizer.json"))
    some = [*texts(60, 2), "", "", "", *(f"{t} äöü" for t in texts(20, 3))]
    data = pd.DataFrame(
        {"body": some, "answer": [" bal"] * len(some), "input_ids": [[1, 2, 999]] * len(some)}
    )
    found = both(
        spark,
        audit.tokens,
        str(tmp_path / "tokenizer.json"),
        data,
        text="body",
        answer="answer",
        max_length=80,
    )
    assert faults(found) == {
        "pipeline.truncation",
        "pipeline.tokenizer-mismatch",
        "pipeline.token-out-of-vocab",
    }
    frame = table(400, 1).assign(y=lambda f: f["y"].where(f.index % 10 > 0))
    found = both(spark, audit.data, pd.concat([frame, frame.iloc[:30]]), label="y")
    assert faults(found) == {"data.degenerate-samples", "data.label-out-of-range"}
    # Infinite values, and NaN that is no NULL: in a file and in memory.
    odd = pa.table({name: pa.array(frame[name].to_numpy()) for name in ("f0", "f1", "f2")})
    values = frame["f3"].to_numpy().copy()
    values[[3, 5]] = np.inf, -np.inf
    odd = odd.append_column("f3", pa.array(values)).append_column(
        "f4", pa.array(np.where(np.arange(400) % 3, np.nan, values))
    )
    pq.write_table(odd, tmp_path / "odd.parquet")
    for data in (odd, str(tmp_path / "odd.parquet")):
        found = both(spark, audit.data, data)
        assert faults(found) == {"data.nonfinite-input"}
        assert [e.value for e in found.findings[0].evidence] == [2, 1, 266 / 400]
