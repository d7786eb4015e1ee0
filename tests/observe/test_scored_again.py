"""Evaluations are scored again from answers and labels, whichever way the script reads them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from sawbones.observe.signals.arrays import wrap
from sawbones.observe.signals.scored import Scored
from sawbones.observe.sites import SiteFinder

SCORES = torch.tensor([[2.0, 1.0], [0.0, 3.0], [5.0, 4.0], [1.0, 0.0]])
LABELS = torch.tensor([0, 1, 1, 0])


def _evaluate(
    batches: list[tuple[Tensor, Tensor]], by_one: bool = False
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    scored = Scored(SiteFinder(), rows)
    for answers, labels in batches:
        scored.called(7, True, [])
        scored.answered(answers)
        for label in labels if by_one else [labels]:
            scored.seen(label, is_output=False)
    scored.called(7, False, [])
    return rows


@pytest.mark.parametrize("by_one", [False, True], ids=["whole batches", "label by label"])
def test_the_right_score_stands_beside_those_of_the_mistakes(by_one: bool) -> None:
    (row,) = _evaluate([(SCORES, LABELS), (SCORES[:2], torch.tensor([1, 1]))], by_one)
    assert (row["rows"], row["calls"], row["sizes"]) == (6, 2, [2, 4])
    assert row["largest"]["all"] == pytest.approx(4 / 6)  # type: ignore[index]
    assert row["largest"]["batches"] == [0.75, 0.5]  # type: ignore[index]
    # guesses 0 1 0 0 0 1 against four labels of 1 and two of 0
    assert row["largest"]["pairs"] == pytest.approx((4 * 2 + 2 * 4) / 36)  # type: ignore[index]


def test_one_score_per_sample_is_cut_in_every_way() -> None:
    (row,) = _evaluate([(torch.tensor([[0.2], [0.7], [0.9], [0.4]]), LABELS.float())])
    assert row["over_half"]["all"] == 1.0  # type: ignore[index]
    assert row["over_zero"]["all"] == 0.5  # type: ignore[index]
    assert row["whole_part"]["all"] == row["class_0"] == 0.5  # type: ignore[index]


def test_an_evaluation_without_labels_is_left_out() -> None:
    assert _evaluate([(SCORES, LABELS), (SCORES, torch.tensor([0.3, 0.1, 0.2, 0.4]))]) == []


def test_two_readings_that_could_both_be_labels_decide_nothing() -> None:
    rows: list[dict[str, object]] = []
    scored = Scored(SiteFinder(), rows)
    scored.called(0, True, [])
    scored.answered(SCORES)
    scored.seen(LABELS, is_output=False)
    scored.seen(1 - LABELS, is_output=False)
    scored.finish()
    assert rows == []


def test_arrays_of_several_batches_tell_that_they_were_joined() -> None:
    said: list[str] = []

    def tell(name: str, *_: object) -> None:
        said.append(name)

    parts = [wrap(np.arange(4) + n, tell, "output", (n,)) for n in range(2)]
    joined = np.concatenate(parts)
    assert said == ["cat"]
    assert joined.tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
    assert (joined[:, None] == np.arange(8)).shape == (8, 8)
    assert said == ["cat", "__getitem__", "eq"]
