"""Texts that are evaluated and nearly trained on, read from the ids that a model is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.near_texts import near_texts
from sawbones.observe.populations.words import bags_of

RNG = np.random.default_rng(3)
TEXTS = RNG.integers(10, 4000, (400, 14))


def _pass(num: int) -> Judged:
    wanted = RNG.integers(0, 2, num).astype(np.float32)
    answers = np.stack([1 - wanted, wanted], 1)
    errors = np.zeros(num)
    errors[num // 2 :] = 1.0
    rows = np.zeros((num, 2), np.float32)
    hashes = tuple(range(num))
    return Judged(0, (), (0, 0), None, False, rows, hashes, answers, wanted, "classes", errors, 0.0)


def _bags(texts: Any) -> Any:
    found = bags_of(torch.tensor(texts))
    assert found is not None
    return found


def test_rows_of_ids_and_ids_in_a_row_have_the_same_words() -> None:
    starts = torch.arange(0, 400 * 14, 14)
    flat = bags_of((torch.tensor(TEXTS.reshape(-1)), starts))
    assert flat is not None and np.array_equal(flat, _bags(TEXTS))


def test_copies_in_another_order_with_a_word_more_are_counted_and_the_score_without_them() -> None:
    copies = RNG.permuted(TEXTS[:30], axis=1)
    copies[:, 0] = 7
    rest = RNG.integers(10, 4000, (30, 14))
    told = near_texts(_pass(60), _bags(np.concatenate([copies, rest])), _bags(TEXTS))
    assert told is not None
    assert (told.derived, told.rows) == (30, 60)
    assert (told.score, told.new_score) == (0.5, 0.0)


def test_texts_of_a_template_are_near_to_many_and_are_no_copies() -> None:
    made = np.tile(np.arange(10, 24), (460, 1))
    made[:, [3, 7]] = RNG.integers(100, 4000, (460, 2))
    told = near_texts(_pass(60), _bags(made[:60]), _bags(made[60:]))
    assert told is None or told.derived == 0


def test_texts_of_their_own_are_near_to_none() -> None:
    told = near_texts(_pass(60), _bags(RNG.integers(10, 4000, (60, 14))), _bags(TEXTS))
    assert told is not None and told.derived == 0
