"""Pieces written by hand: right ones pass, each known mistake is refused and named, and what differs
is shown.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.lookup import look_up
from sawbones.practise.writing.assignments import Assignment, assignment, assignments
from sawbones.practise.writing.beginning import MARK, next_one
from sawbones.practise.writing.judging import Judged, NotWritten, Outcome, compare, judge

RIGHT = Path(__file__).parent / "written"
EVERY = list(assignments().values())
MISTAKES = [
    pytest.param(asked, words, id=f"{asked.name}: {words}")
    for asked in EVERY
    for words in asked.mistakes
]


@pytest.mark.parametrize("asked", EVERY, ids=lambda one: one.name)
def test_what_is_right_passes_on_hidden_inputs(asked: Assignment) -> None:
    judged = judge(asked, RIGHT / asked.file, seed=5)
    assert judged == Judged(1.0, True, ())
    assert judged.points(asked.minutes, asked.minutes) == 100
    assert judged.points(asked.minutes + 10, asked.minutes) == 80


@pytest.mark.parametrize(("asked", "words"), MISTAKES)
def test_a_known_mistake_is_refused_and_named(asked: Assignment, words: str) -> None:
    for seed in range(5):
        made = [Outcome(asked.mistakes[words](**case.arguments)) for case in asked.cases(seed)]
        judged = compare(asked, seed, made)
        assert not judged.passed and judged.share < 1 and judged.mistake == words


@pytest.mark.parametrize("asked", EVERY, ids=lambda one: one.name)
def test_an_assignment_can_be_begun_and_read_about(asked: Assignment) -> None:
    compile(asked.starter, asked.file, "exec")
    assert f"def {asked.function}(" in asked.starter
    assert all(f'"{term}"' in asked.starter for term in asked.terms)
    assert asked.page == "derivations" or look_up(asked.page)


def _changed(tmp_path: Path, old: str, new: str, name: str = "layer-norm") -> Judged:
    asked = assignment(name)
    text = (RIGHT / asked.file).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / asked.file).write_text(text.replace(old, new), encoding="utf-8")
    return judge(asked, tmp_path / asked.file, seed=2)


def test_the_first_wrong_term_is_shown_with_shape_dtype_or_entry(tmp_path: Path) -> None:
    shape = _changed(tmp_path, '"bias": upstream.sum((0, 1))', '"bias": upstream.sum(0)')
    assert "bias: shape (" in shape.first_wrong[1]
    dtype = _changed(tmp_path, "normal * weight + bias", "(normal * weight + bias).astype('f4')")
    assert dtype.first_wrong[1] == "output: dtype float32, expected float64"
    factor = _changed(tmp_path, '"x": inverse / width', '"x": 2 * inverse / width')
    assert "every entry is 2 times" in factor.first_wrong[1] and factor.share == 0.75
    turned = _changed(tmp_path, "dz @ w1.T", "dz @ w1", "mlp-backward")
    assert turned.first_wrong[0].startswith("hidden input 1 of 6 (all sizes are 3")
    assert turned.first_wrong[1].startswith("x: ")


def test_an_error_a_hang_and_a_changed_argument_are_said(tmp_path: Path, monkeypatch) -> None:
    error = _changed(tmp_path, "    centred =", "    1 / 0\n    centred =")
    assert "ZeroDivisionError" in error.first_wrong[1] and "layer_norm.py:6" in error.first_wrong[1]
    assert error.share == 0 and not error.mistake
    changed = _changed(tmp_path, "    centred =", "    upstream += 0.5\n    centred =")
    assert not changed.passed
    kept = _changed(
        tmp_path, '    return {\n        "output"', '    x[:] = 0\n    return {\n        "output"'
    )
    assert kept.first_wrong[1] == "x was changed in place" and not kept.passed
    monkeypatch.setattr("sawbones.practise.writing.judging.LONGEST", 5.0)
    hung = _changed(tmp_path, "    centred =", "    while True: pass\n    centred =")
    assert hung.first_wrong[1] == "it did not end within 5 s"


def test_a_library_in_place_of_the_person_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="imports sawbones"):
        _changed(tmp_path, "import numpy as np", "from sawbones.oracles import norms")


def test_from_an_empty_folder_to_a_graded_piece(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _main("practise", "write", "scaler")
    assert "write-1/scaler.py" in capsys.readouterr().out
    _main("practise", "write", "--grade")
    assert "0 of 100 points" in capsys.readouterr().out
    (tmp_path / "write-1" / "scaler.py").write_text((RIGHT / "scaler.py").read_text())
    _main("practise", "write", "--grade", "--seed", "3")
    assert "100 of 100 points, 0 of 6 minutes" in capsys.readouterr().out
    mark = tmp_path / "write-1" / MARK
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "begun": 0}))
    _main("practise", "write", "--grade")
    assert "50 of 100 points" in capsys.readouterr().out  # decades late
    _main("practise", "score")
    assert "scaler          not yet     50" in capsys.readouterr().out


def _main(*args: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    assert end.value.code == 0


def test_what_was_failed_is_asked_again_first() -> None:
    first = next_one([]).name
    assert first == EVERY[0].name
    assert next_one([{"assignment": first, "passed": True}]).name == EVERY[1].name
    assert next_one([{"assignment": "scaler", "passed": False}]).name == "scaler"
