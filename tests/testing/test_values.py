"""Plain tensors: finite, in range, shifted, masked, on a sane scale."""

from __future__ import annotations

import pytest
import torch

import sawbones.testing
from sawbones.testing import (
    assert_finite,
    assert_labels_in_range,
    assert_masks,
    assert_normalised,
    assert_targets_shifted,
)


def test_the_place_of_a_nan_is_told() -> None:
    values = torch.zeros(3, 2)
    assert_finite({"x": values, "n": torch.arange(3)})
    values[1, 0] = float("nan")
    with pytest.raises(
        AssertionError, match=r"batch\['x'\]\[1, 0\] is nan, and 1 of 6 in all; expected finite"
    ):
        assert_finite({"x": values}, "batch")


def test_a_label_out_of_range_is_told_with_its_example() -> None:
    assert_labels_in_range(torch.tensor([0, 2, -100]), 3)
    with pytest.raises(
        AssertionError, match=r"example 1: label 3, and 1 of 3 in all; expected 0 to 2"
    ):
        assert_labels_in_range(torch.tensor([0, 3, 1]), 3)
    with pytest.raises(AssertionError, match=r"example 0, position 1: label -1"):
        assert_labels_in_range(torch.tensor([[0, -1]]), 3)
    with pytest.raises(AssertionError, match=r"labels are torch.float32"):
        assert_labels_in_range(torch.tensor([0.0]), 3)


def test_targets_that_are_not_the_next_input_are_told() -> None:
    ids = torch.arange(12).view(2, 6)
    assert_targets_shifted(ids[:, :-1], ids[:, 1:])
    with pytest.raises(
        AssertionError,
        match=(
            r"example 0, position 0: target 0, and 8 of 8 targets in all; expected 1, the "
            r"input at position 1"
        ),
    ):
        assert_targets_shifted(ids[:, :-1], ids[:, :-1])
    ignored = ids[:, 1:].clone()
    ignored[0, 1] = -100
    assert_targets_shifted(ids[:, :-1], ignored)


def test_a_mask_says_of_every_token_whether_it_is_padding() -> None:
    tokens = torch.tensor([[5, 6, 0], [7, 0, 0]])
    assert_masks(tokens != 0, tokens)
    assert_masks(tokens == 0, tokens, true_means="drop")
    with pytest.raises(
        AssertionError,
        match=r"example 0, position 0 \(token 5\): mask is False, and at 6 of 6 positions",
    ):
        assert_masks(tokens == 0, tokens)
    with pytest.raises(
        AssertionError, match=r"the mask is torch.float32 \(values 0 to 1\); expected torch.bool"
    ):
        assert_masks((tokens != 0).float(), tokens)
    with pytest.raises(
        AssertionError, match=r"shape \(3, 2\); expected that of the tokens, \(2, 3\)"
    ):
        assert_masks((tokens != 0).t(), tokens)


def test_inputs_on_a_wrong_scale_are_told() -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    assert_normalised(values)
    with pytest.raises(AssertionError, match=r"mean 12\d and spread 2\d.* \(from"):
        assert_normalised(values * 25 + 127)


def test_every_public_name_is_there_and_says_what_it_asserts() -> None:
    assert sorted(sawbones.testing.__all__) == sawbones.testing.__all__
    for name in sawbones.testing.__all__:
        assert getattr(sawbones.testing, name).__doc__, name
    with pytest.raises(AttributeError, match=r"no 'assert_magic'. There are: assert_all"):
        sawbones.testing.assert_magic  # noqa: B018
