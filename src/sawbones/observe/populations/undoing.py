"""A population on which a model is far worse, made as good again: the model answers once more for the
same rows with one usual mistake of a second preparation taken back (channels in another order, values
of 0 to 255 for 0 to 1, other means and spreads of the channels, pictures upside down or turned).

What heals names itself: no statistic of the rows has to be told from chance.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sawbones.observe.populations.columns import MAX_ROWS, share_right
from sawbones.observe.populations.judged import Judged
from sawbones.observe.populations.log import PassLog
from sawbones.schema.populations import PutBack, WorsePair

REGAINED = 0.8  # of what the score is below that of the other population
LEAST_LOST = 0.1  # below it: less says nothing about which change heals
GREY_LEVELS = 255.0

Pictures = npt.NDArray[np.float32]


def put_back(log: PassLog, found: Sequence[Judged], pairs: Sequence[WorsePair]) -> PutBack | None:
    """The change that makes the first far worse population good again, with both scores."""
    by_number = {one.number: one for one in found}
    for pair in pairs:
        told = _healed(log, by_number[pair.reference], by_number[pair.later])
        if told is not None:
            return told
    return None


def _healed(log: PassLog, reference: Judged, later: Judged) -> PutBack | None:
    trained, shape = log.module_of(later.number), log.latest()[later.number].shape
    if trained is None or shape is None or later.wanted is None or later.kind != "classes":
        return None
    lost = reference.score - later.score
    if len(shape) != 3 or lost < LEAST_LOST:
        return None
    module = copy.deepcopy(trained).train(later.is_training)
    pictures = later.rows[:MAX_ROWS].reshape(-1, *shape)
    wanted = later.wanted[:MAX_ROWS]
    before = share_right(module, pictures, wanted)
    if before is None or abs(before - float(np.mean(_right(later)[:MAX_ROWS]))) > 1e-6:
        return None  # the model is not what it was
    tried = [
        (share_right(module, np.ascontiguousarray(other), wanted) or 0.0, name, order)
        for name, order, other in _changes(pictures)
    ]
    if later.likeness is not None:  # the trained model itself may be tried on dimmed pictures
        scaled = _scaled_as(pictures, reference.rows.reshape(-1, *shape))
        right = share_right(module, scaled, wanted) or 0.0
        tried.append((right, "the channels scaled as there", ()))
    after, name, order = max(tried, key=lambda t: t[0], default=(0.0, "", ()))
    if after - before < REGAINED * (reference.score - before):
        return None
    return PutBack(
        reference.number,
        later.number,
        len(pictures),
        change=name,
        order=order,
        scores=(reference.score, before, after),
        num_tried=len(tried),
    )


def _right(one: Judged) -> npt.NDArray[np.bool_]:
    return np.asarray(one.given == one.wanted)


def _changes(pictures: Pictures) -> Iterator[tuple[str, tuple[int, ...], Pictures]]:
    """(what is put back, the order of the channels where it is that, the pictures)."""
    channels = pictures.shape[1]
    if channels == 3:
        for order in itertools.permutations(range(channels)):
            if order != tuple(range(channels)):
                yield "channels", order, pictures[:, order]
    yield "values times 255", (), pictures * np.float32(GREY_LEVELS)
    yield "values divided by 255", (), pictures / np.float32(GREY_LEVELS)
    yield "upside down", (), pictures[:, :, ::-1]
    yield "left and right exchanged", (), pictures[:, :, :, ::-1]
    if pictures.shape[2] == pictures.shape[3]:
        yield "rows and columns exchanged", (), pictures.transpose(0, 1, 3, 2)


def _scaled_as(pictures: Pictures, others: Pictures) -> Pictures:
    """With the mean and the spread of the others, channel by channel."""
    axes = (0, 2, 3)
    (mean, spread), (wanted, width) = (
        (p.mean(axes, keepdims=True), p.std(axes, keepdims=True)) for p in (pictures, others)
    )
    scaled: Pictures = (pictures - mean) * (width / np.maximum(spread, 1e-12)) + wanted
    return scaled.astype(np.float32)
