"""Thirty answers, scored by hand from the rubric before they were graded: the grader keeps their order."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = sorted((ROOT / "tests" / "practise" / "answers").glob("*.toml"))


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grading", ROOT / "benchmarks" / "grading.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["grading"] = module  # its dataclasses look for their own module
    spec.loader.exec_module(module)
    return module


def test_thirty_answers_of_every_class_were_scored_by_hand(benchmark: ModuleType) -> None:
    held = [tomllib.loads(path.read_text(encoding="utf-8"))["answer"] for path in ANSWERS]
    assert sum(map(len, held)) == 30
    for rows in held:
        assert {row["class"] for row in rows} == set(benchmark.ORDER)
        for row in rows:  # by the parts of the rubric; what does not hold costs points
            assert 0 <= row["total"] == pytest.approx(max(0, sum(row["by_hand"].values())))


def test_an_inversion_and_a_bad_correlation_are_seen(benchmark: ModuleType) -> None:
    right = benchmark.Row("one", "right", "", 90, 40)
    wrong = benchmark.Row("one", "wrong", "", 10, 50)
    assert benchmark.inversions([right, wrong]) == [(right, wrong)]
    assert benchmark.rank_correlation([90, 10, 50], [10, 90, 50]) == pytest.approx(-1)


@pytest.mark.long
def test_the_grader_ranks_them_as_the_hand_did_and_inverts_no_classes(
    benchmark: ModuleType,
) -> None:
    rows = [row for path in ANSWERS for row in benchmark.graded(path)]
    assert len(rows) == 30
    found = benchmark.rank_correlation([r.by_hand for r in rows], [r.graded for r in rows])
    assert found >= 0.9
    assert benchmark.inversions(rows) == []
