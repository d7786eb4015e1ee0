"""Drills: every card has an answer, every command exists, and what was missed comes first."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sawbones.cli.main import COMMANDS, main
from sawbones.lookup import look_up
from sawbones.lookup.curves import CURVES
from sawbones.practise.drills import (
    KINDS,
    cards,
    drawn,
    in_order,
    is_known,
    questions,
    recorded_curves,
)
from sawbones.schema import LAYERS, faults
from sawbones.scoring.cases import lab_cases
from sawbones.trials.menu import parse

WORDS_A_MINUTE = 150
RECORDER = Path(__file__).resolve().parents[2] / "benchmarks" / "recorded_curves.py"


@pytest.mark.parametrize("kind", KINDS)
def test_cards_are_distinct_and_answered(kind: str) -> None:
    deck = cards(kind, 3)
    assert len({card.id for card in deck}) == len(deck) >= 10
    assert all(card.ask and card.answer for card in deck)
    assert deck == cards(kind, 3)


def test_the_command_of_every_question_exists() -> None:
    for card in cards("questions", 0):
        command = card.more.partition("See it: ")[2]
        _, name, *rest = shlex.split(command)
        assert name in COMMANDS
        assert look_up(rest[0]) if name == "explain" else parse(rest[0])


def test_there_are_questions_on_every_layer_each_answered_within_a_minute() -> None:
    assert set(questions()) == set(LAYERS)
    assert min(map(len, questions().values())) >= 8
    every = [row for rows in questions().values() for row in rows]
    assert len({row["ask"] for row in every}) == len(every) >= 150
    for row in every:
        assert set(row) == {"ask", "answer", "not", "command"}
        assert 10 <= len(row["answer"].split()) <= WORDS_A_MINUTE, row["ask"]
        said, _, why = row["not"].partition(". ")
        assert said and why.endswith("."), f"{row['ask']}: the wrong answer, and why it is wrong"


def test_what_was_missed_comes_first_and_what_is_known_last() -> None:
    deck = cards("numbers", 0)
    past = [{"card": deck[0].id, "right": True}, {"card": deck[4].id, "right": False}]
    order = in_order(deck, past, 1)
    assert order[0] == deck[4] and order[-1] == deck[0]


def _recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recorded_curves", RECORDER)
    assert spec is not None and spec.loader is not None
    recorder = importlib.util.module_from_spec(spec)
    sys.modules["recorded_curves"] = recorder
    spec.loader.exec_module(recorder)
    return recorder


def test_curves_are_recorded_runs_and_every_shape_has_one() -> None:
    rows = recorded_curves()
    cases = [*lab_cases(), *_recorder().own_cases()]
    broken = {case.name: case.fault for case in cases if case.fault}
    assert set(broken.values()) <= set(faults())
    assert {row["symptom"] for row in rows} == set(CURVES)
    for row in rows:
        assert broken[row["script"]] == row["fault"]
        assert len(row["training"]) == min(60, row["steps"]) >= 12
        assert len(set(row["training"]) - {None}) >= 6
    for card, row in zip(cards("curves", 0), rows, strict=True):
        assert row["symptom"] in card.answer and row["fault"] in card.more
        assert row["symptom"] not in card.ask and row["fault"] not in card.ask
        assert card.seconds == 10


def test_a_recorded_curve_is_drawn_with_its_range_its_evaluations_and_its_end() -> None:
    row = {"steps": 40, "training": [4.0, 3.0, 2.0, None], "evaluation": [[19, 8.0], [39, 1.0]]}
    assert drawn(row).splitlines() == [
        "    training    ▄▃▂ NaN",
        "    evaluation   █ ▁",
        "    from 1 to 8",
    ]
    wide = {"steps": 3, "training": [1e-3, 1.0, 1e3], "evaluation": []}
    first, last = drawn(wide).splitlines()
    assert first.split()[1] == "▁▅█" and last.strip() == "from 0.001 to 1e+03, logarithmic"


def test_a_curve_that_is_named_too_late_comes_again(capsys, monkeypatch) -> None:
    deck = cards("curves", 1)
    assert is_known(deck[0], True, 9.9) and not is_known(deck[0], True, 10.1)
    assert not is_known(deck[0], False, 1.0)
    assert is_known(cards("numbers", 1)[0], True, 300.0)
    clock = iter([0.0, 4.0, 100.0, 130.0])
    monkeypatch.setattr("sawbones.cli.practise.time.monotonic", lambda: next(clock))
    said = iter(["spikes", "y", "overfits", "y"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    with pytest.raises(SystemExit):
        main(["practise", "drill", "curves", "--count", "2", "--seed", "1"])
    text = capsys.readouterr().out
    assert "1 of 2 right" in text and "That took 30 s; to be named within 10." in text


@pytest.mark.long
def test_a_recorded_curve_comes_out_again(tmp_path: Path) -> None:
    recorder = _recorder()
    row = next(row for row in recorded_curves() if row["symptom"] == "does-not-learn")
    (case,) = [case for case in lab_cases() if case.name == row["script"]]
    again = recorder.curve(case, recorder.recorded(case, tmp_path, recorder.LIMIT_S))
    assert again["symptom"] == row["symptom"] and again["steps"] == row["steps"]
    assert again["training"] == pytest.approx(row["training"], rel=0.05)


def test_a_drill_asks_waits_and_remembers(capsys, monkeypatch) -> None:
    said = iter(["log ten", "y", "no idea", "n"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    with pytest.raises(SystemExit) as end:
        main(["practise", "drill", "numbers", "--count", "2", "--seed", "1"])
    assert end.value.code == 0 and "1 of 2 right" in capsys.readouterr().out
