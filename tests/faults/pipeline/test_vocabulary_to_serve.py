"""A vocabulary that is built a second time, to serve: under the same name, after the training."""

from __future__ import annotations

import sys

import pytest

from sawbones.evidence import NothingToJudge
from sawbones.faults import all_checks
from sawbones.observe.signals.vocabularies import Vocabularies
from sawbones.schema import Ending, Finding, Run
from sawbones.schema.held import VocabularyPair
from sawbones.schema.populations import Population, Populations

WORDS = [f"word{i}" for i in range(40)]


def test_a_vocabulary_that_takes_the_place_of_another_makes_a_pair() -> None:
    seen = Vocabularies()
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    assert seen._take_mapping("vocabulary", vocabulary)
    vocabulary.update({word: i for i, word in enumerate(reversed(WORDS))})  # the same id
    assert seen._take_mapping("vocabulary", vocabulary)
    (pair,) = seen.record()
    assert (pair.shared, pair.moved) == (40, 40)


def test_one_that_grows_is_still_the_same() -> None:
    seen = Vocabularies()
    vocabulary = {word: i for i, word in enumerate(WORDS[:30])}
    assert seen._take_mapping("vocabulary", vocabulary)
    vocabulary |= {word: i for i, word in enumerate(WORDS)}
    seen.look_early(sys._getframe())
    assert all(pair.moved == 0 for pair in seen.record())


def _said(scores: list[tuple[float, int]], moved: int = 36) -> list[Finding]:
    (check,) = [c for c in all_checks() if c.fault == "pipeline.tokenizer-mismatch"]
    passes = tuple(Population(rows, 0.0, "classes", score) for score, rows in scores)
    pair = VocabularyPair("vocabularies", ("a", "b"), 40, moved, (("word1", 1, 9),), False, ())
    seen = Populations(passes)
    run = Run("x.py", (), "", {}, Ending("finished"), populations=seen, vocabularies=(pair,))
    try:
        return list(check.function(run))
    except NothingToJudge:
        return []


@pytest.mark.parametrize(
    ("scores", "moved", "is_found"),
    [
        ([(0.97, 400), (0.3, 500)], 36, True),
        ([(0.97, 400), (0.9, 500)], 36, False),  # another week
        ([(0.97, 400), (0.6, 12)], 36, False),  # too few to tell
        ([(0.97, 400), (0.3, 500)], 0, False),  # the same vocabulary
        ([(0.97, 400)], 36, False),
    ],
)
def test_it_counts_where_one_evaluation_is_lost(
    scores: list[tuple[float, int]], moved: int, is_found: bool
) -> None:
    assert bool(_said(scores, moved)) == is_found
