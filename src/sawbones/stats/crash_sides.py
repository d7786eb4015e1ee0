"""Sides of images that are halved on the way down and do not come back on the way up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sawbones.schema import Run, Site
from sawbones.stats.crash_shapes import broadcast_clash
from sawbones.stats.crashes import Given, crash, tensors_of

HALVED = (
    "Sides that are halved on the way down come back only where they are divisible by 2 "
    "at every level: use images whose sides are multiples of 2 to the number of halvings, "
    "or pad or crop one value to the size of the other before joining."
)


@dataclass(frozen=True)
class Halved:
    side: int  # of the images of the batch
    advice: str


def halved_side(run: Run, sides: Sequence[Given]) -> Halved | None:
    """The side of the batch that both values come from by halvings, and the next one that would
    come back.
    """
    batch = crash(run).batch
    shapes = [g.bound.shape for g in sides[:2]]
    found = broadcast_clash(shapes[0], shapes[1]) if len(shapes) == 2 else None
    if batch is None or found is None:
        return None
    axis, left, right = found
    kept = max(left, right)
    for image in tensors_of(batch):
        side = image.shape[axis] if len(image.shape) >= -axis else 0
        for halvings in range(8):
            step = 2 ** (halvings + 1)
            if side >> halvings == kept and kept % 2 and side % step:
                more = -(-side // step) * step
                advice = (
                    f"{side} is halved to {kept}, which has no half: with {more} along axis "
                    f"{len(image.shape) + axis} of the images (the next multiple of {step}) this "
                    "level comes back."
                )
                return Halved(side, advice)
    return None


def numbers_of(run: Run, side: int) -> list[Site]:
    """Lines in which the side is written as a number."""
    return [row.site for row in run.source_lines if row.value == side][:1]


def feature_maps(a: tuple[int, ...], b: tuple[int, ...], place: int) -> bool:
    """Two values with sides besides batch and channels; one side only where a halving is all that
    can have changed it.
    """
    return len(a) == len(b) and (len(a) > 3 or abs(a[place] - b[place]) == 1)
