"""Which reshapes shuffle dimensions, by shape alone."""

import pytest

from sawbones.faults.model.head_mixing.check import displaced


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((48, 4, 12, 12), (48, 12, 48)),  # heads merged without moving them behind time
        ((32, 32, 24), (32, 24, 32)),  # channels and time by view
        ((8, 12, 48), (8, 4, 12, 12)),  # heads split off in front of time
        ((2, 16, 32), (16, 64)),  # both directions of a recurrent layer joined by view
        ((8, 12, 48), (32, 12, 12)),  # batch and heads merged across time
        ((48, 32, 6, 6), (48, 36, 32)),  # a feature map into tokens
        ((8, 6, 6, 3), (8, 3, 6, 6)),  # channels-last pictures into channels-first ones
    ],
)
def test_a_view_in_place_of_a_transposition_is_seen(before, after):
    assert displaced(before, after) is not None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((48, 12, 48), (48, 12, 4, 12)),  # features into heads
        ((48, 12, 4, 12), (48, 12, 48)),  # and back
        ((12, 8, 48), (12, 32, 12)),  # (time, batch * heads, width)
        ((8, 24, 48), (32, 6, 48)),  # chunks of a long sequence
        ((8, 3, 32, 32), (8, 3, 4, 8, 4, 8)),  # patches
        ((1, 16, 32), (16, 32)),  # the hidden state of one direction
        ((64, 10), (640,)),
        ((8, 4, 6, 4), (8, 4, 24)),  # two equal sizes, and nothing cut across
        ((8, 24, 4), (8, 4, 6, 4)),
    ],
)
def test_reshapes_that_keep_dimensions_whole_are_silent(before, after):
    assert displaced(before, after) is None
