"""Near-duplicates: the sets are right, the recall is what it is said to be, and no pair is reported
on an estimate.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import altered, texts

from sawbones.audits.minhash import TextIndex, band_keys, blocks, jaccard, joined, shingles


def sets_of(some: list[str | None]):
    return joined(
        [shingles(text, offsets) for _, text, offsets in blocks(pa.array(some, pa.string()))]
    )


def runs(text: str) -> set[str]:
    words = text.lower().split()
    return {" ".join(words[i : i + 3]) for i in range(len(words) - 2)} or (
        {" ".join(words)} if words else set()
    )


def test_sets_have_the_size_of_the_texts_three_word_runs() -> None:
    some = [
        *texts(50, 1),
        "one",
        "one two",
        "",
        None,
        "same same same same same",
        "a b c a b c a b c",
    ]
    expected = [len(runs(text or "")) for text in some]
    assert sets_of(some).sizes.tolist() == expected


def test_case_punctuation_and_spaces_do_not_count() -> None:
    sets = sets_of(
        [
            "The quick, brown fox (jumps)!",
            "the  quick brown\tFOX jumps",
            "the quick brown fox jumped",
        ]
    )
    assert jaccard(sets, sets, np.array([0, 0]), np.array([1, 2])).tolist() == [1.0, 0.5]


def test_characters_without_spaces_between_are_words() -> None:
    sets = sets_of(
        [
            "今天天气很好我们去公园",
            "今天天气很好我们去学校",
            "naïve café owners sing",
            "naïve café owners dance",
        ]
    )
    similar = jaccard(sets, sets, np.array([0, 2]), np.array([1, 3]))
    assert 0.5 < similar[0] < 1
    assert 0 < similar[1] < 1


def test_texts_do_not_run_into_each_other() -> None:
    alone = sets_of(["alpha beta gamma delta"])
    amid = sets_of(["one two three", "alpha beta gamma delta", "four five six"])
    assert amid.values[amid.starts[1] : amid.starts[2]].tolist() == alone.values.tolist()


def test_recall_at_the_threshold_is_one_and_every_pair_is_verified() -> None:
    base = texts(1500, 1)
    near = [altered(base[i], 0.02 * (1 + i % 4), i) for i in range(600)]
    index = TextIndex(sets_of(near))
    passing, indexed, similar = index.matches(sets_of(base), 0.8)
    exact = {
        (i, i): len(runs(a) & runs(b)) / len(runs(a) | runs(b))
        for i, (a, b) in enumerate(zip(base[:600], near, strict=True))
    }
    wanted = {pair for pair, value in exact.items() if value >= 0.8}
    found = set(zip(passing.tolist(), indexed.tolist(), strict=True))
    assert len(wanted) > 100
    assert len(wanted & found) >= 0.99 * len(wanted)
    for p, i, s in zip(passing, indexed, similar, strict=True):
        a, b = runs(base[p]), runs(near[i])
        assert s == pytest.approx(len(a & b) / len(a | b))
        assert s >= 0.8


def test_empty_texts_are_nobodys_twin() -> None:
    sets = sets_of(["", None, " ... ", "real words are here"])
    keys = band_keys(sets)
    assert len({tuple(row) for row in keys.tolist()}) == 4
    passing, indexed, _ = TextIndex(sets).matches(sets, 0.5)
    assert list(zip(passing.tolist(), indexed.tolist(), strict=True)) == [(3, 3)]
