from __future__ import annotations

from sawbones.evidence.counting_words import singular


def test_one_of_something_is_not_many() -> None:
    assert singular("mass on later keys (1 attention layers)") == (
        "mass on later keys (1 attention layer)"
    )
    assert singular("1 batches, 1 classes") == "1 batch, 1 class"


def test_numbers_that_end_in_one_stay_as_they_are() -> None:
    for text in (
        "21 layers",
        "0.1 steps",
        "1,001 rows",
        "1 of 32 samples",
        "-1 steps",
        "1 to 3 rows",
    ):
        assert singular(text) == text
