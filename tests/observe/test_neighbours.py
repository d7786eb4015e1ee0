"""Labels that change places without a split by classes taking notice."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, train_test_split

from sawbones.observe.sources.containers import label_column, turn_labels
from sawbones.observe.sources.neighbours import neighbours

NUM = 600


def _stratified(labels: np.ndarray, seed: int) -> list[int]:
    rows = np.arange(NUM)
    return train_test_split(rows, test_size=0.3, stratify=labels, random_state=seed)[0].tolist()


def _in_three(labels: np.ndarray, seed: int) -> list[int]:
    rows = np.arange(NUM)
    rest, _ = train_test_split(rows, test_size=0.2, stratify=labels, random_state=seed)
    return train_test_split(rest, test_size=0.25, stratify=labels[rest], random_state=1)[0].tolist()


def _by_hand(labels: np.ndarray, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    kept: list[int] = []
    for one in np.unique(labels):
        rows = np.flatnonzero(labels == one)
        kept += rng.permutation(rows)[: int(0.7 * len(rows))].tolist()
    return kept


def _fold(labels: np.ndarray, seed: int) -> list[int]:
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    return next(iter(folds.split(np.zeros((NUM, 1)), labels)))[0].tolist()


@pytest.mark.parametrize("split", [_stratified, _in_three, _by_hand, _fold])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_training_part_stays_when_neighbours_of_the_rest_exchange_their_labels(
    split: object, classes: int
) -> None:
    assert callable(split)
    for seed in range(5):
        drawn = np.random.default_rng(seed).choice(classes, NUM)
        trained = split(drawn, seed)
        rest = np.setdiff1d(np.arange(NUM), trained)
        rows, taken = neighbours(drawn, rest[len(rest) // 2 :])
        assert len(rows) >= 10
        labels = drawn.copy()
        assert turn_labels(labels, 0, rows, taken)
        assert split(labels, seed) == trained
        assert (labels != drawn).sum() == len(rows)
        assert np.array_equal(labels[trained], drawn[trained])
        rolled = drawn.copy()
        turn_labels(rolled, 0, rest, np.roll(rest, 1))
        assert split(rolled, seed) != trained, "the old exchange moves the split"


def test_too_few_neighbours_are_none() -> None:
    labels = np.zeros(100, np.int64)
    labels[:3] = 1
    rows, taken = neighbours(labels, np.arange(50, 100))
    assert not len(rows) and not len(taken)
    assert not turn_labels(labels, 0, rows, taken)


def test_labels_are_read_from_words_and_records() -> None:
    words = [{"age": float(i), "bought": "yes" if i % 3 else "no"} for i in range(60)]
    column = label_column(words, 1)
    assert column is not None and column.tolist()[:3] == ["no", "yes", "yes"]
