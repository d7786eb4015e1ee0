"""Drills: every card has an answer, every command exists, and what was missed comes first."""

from __future__ import annotations

import shlex

import pytest

from sawbones.cli.main import COMMANDS, main
from sawbones.lookup import look_up
from sawbones.practise.drills import KINDS, cards, in_order, questions
from sawbones.schema import LAYERS
from sawbones.trials.menu import parse

WORDS_A_MINUTE = 150


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


def test_a_drill_asks_waits_and_remembers(capsys, monkeypatch) -> None:
    said = iter(["log ten", "y", "no idea", "n"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    with pytest.raises(SystemExit) as end:
        main(["practise", "drill", "numbers", "--count", "2", "--seed", "1"])
    assert end.value.code == 0 and "1 of 2 right" in capsys.readouterr().out
