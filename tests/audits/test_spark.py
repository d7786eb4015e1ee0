"""The same audits on Spark: findings identical to DuckDB's. Needs pyspark and Java."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import table

from sawbones import audit
from sawbones.schema import Report

pytest.importorskip("pyspark", reason="needs pyspark")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
    pytest.mark.filterwarnings("ignore"),  # PySpark speaks of pandas 3 on every call
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
            tuple((e.text, None if e.value is None else round(e.value, 3)) for e in f.evidence if e.signal != "rows"),
        )
        for f in report.findings
    ]


def rows(count: int, seed: int) -> pd.DataFrame:
    frame = table(count, seed)[["f0", "f1", "gap", "plan", "visits", "y"]]
    rng = np.random.default_rng(seed)
    frame["user"] = rng.integers(0, 50, count) + 40 * seed
    frame["leak"] = frame["y"] + rng.normal(0, 0.2, count)
    return frame


def test_leaks_are_the_same_on_both_engines(spark, tmp_path: Path) -> None:
    train, test = rows(400, 1), rows(250, 2)
    test = pd.concat([test, train.iloc[:12]])
    train.to_parquet(tmp_path / "train.parquet")
    test.to_parquet(tmp_path / "test.parquet")
    paths = str(tmp_path / "train.parquet"), str(tmp_path / "test.parquet")
    options = {"label": "y", "group": "user", "model": False}
    here = audit.leaks(*paths, **options)
    there = audit.leaks(*paths, **options, engine=spark)
    assert {f.fault for f in here.findings} == {"evaluation.leak-contamination", "evaluation.leak-group", "evaluation.leak-target"}
    assert said(there) == said(here)
    assert there.environment["audit"]["engine"] == "pyspark"


def test_shifts_are_the_same_on_both_engines(spark) -> None:
    before, after = rows(400, 1).drop(columns=["user", "leak"]), rows(300, 2).drop(columns=["user", "leak"])
    after["f1"] += 1.0
    after["plan"] = after["plan"].replace("free", "gratis")
    here = audit.shift(before, after, label="y")
    there = audit.shift(before, after, label="y", engine=spark)
    assert {f.fault for f in here.findings} == {"deployment.covariate-shift", "deployment.pipeline-drift"}
    assert said(there) == said(here)
