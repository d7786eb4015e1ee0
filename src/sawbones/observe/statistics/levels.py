"""What is usual for each gradient's norm, so that a cheap number can call for the dear ones at
once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

WINDOW = 16  # steps the running median looks back over
# the median is taken anew every so many steps: sorting on every step would cost more than the norms
REFRESH = 8
SETTLED, SELDOM = (
    128,
    32,
)  # after so many steps a gradient's range is known, and this is often enough
JUMP = 10.0  # a norm this many times its median is abnormal
# abnormal steps examined in a row; after that one in RECOVERY steps, so that a spiky run stays
# cheap
BURST = 4.0
RECOVERY = 25.0

_FEW = 64  # numbers that plain Python compares faster than NumPy
_LARGEST = float(np.finfo(np.float32).max)


class GradientLevels:
    """Running median per tensor. Only finite, non-zero norms enter it: one NaN must not blind the
    steps after it.
    """

    def __init__(self, num_tensors: int) -> None:
        self._window: list[
            Sequence[float] | npt.NDArray[np.float32]
        ] = []  # rows of the latest steps, in any order
        self._median = np.zeros(num_tensors, np.float32)
        self._limit = np.full(num_tensors, _LARGEST, np.float32)
        self._limits: list[float] = self._limit.tolist()
        self._everyone = np.ones(num_tensors, np.bool_)
        self._was_normal = self._everyone
        self._steps = 0
        self._allowance = BURST

    def turned_abnormal(self, l2: npt.NDArray[np.float32]) -> bool:
        """Whether some tensor left its usual range on this very step: non-finite, zero, or a jump.
        A tensor that stays
        zero or NaN has been looked at once; it does not ask again. Sentinels (negative) are
        neither."""
        if self.is_usual(l2.tolist()) if len(l2) <= _FEW else self._all_normal(l2):
            return False
        self._allowance = min(BURST, self._allowance + 1.0 / RECOVERY)
        normal = np.logical_and(l2 <= self._limit, l2)
        # What stays high is the new level, and the median must be able to follow it there.
        stays = ~self._was_normal & (l2 > 0) & (l2 <= _LARGEST)
        self._remember(np.where(normal | stays, l2, self._median))
        fresh = self._was_normal & ~normal
        self._was_normal = normal
        if not fresh.any():
            return False
        if not np.isfinite(l2[fresh]).all():
            return True
        if self._allowance < 1.0:
            return False
        self._allowance -= 1.0
        return True

    def is_usual(self, l2: list[float]) -> bool:
        """Whether all are within their range. If so that is all there is to know of this step, else
        `turned_abnormal` says more.
        """
        total = sum(l2)  # NaN is not above any limit
        if total != total or any(map(operator.gt, l2, self._limits)):
            return False
        if 0.0 in l2:
            return self._zero_as_before(l2)
        self._normal(l2)
        return True

    def _zero_as_before(self, l2: list[float]) -> bool:
        """Those that are zero were so in the step before: they have been looked at."""
        normal = np.array(l2) != 0.0
        if not np.array_equal(normal, self._was_normal):
            return False
        self._allowance = min(BURST, self._allowance + 1.0 / RECOVERY)
        self._remember(np.where(normal, l2, self._median))
        return True

    def _all_normal(self, l2: npt.NDArray[np.float32]) -> bool:
        if not np.logical_and(l2 <= self._limit, l2).all():
            return False
        self._normal(l2)
        return True

    def _normal(self, l2: Sequence[float] | npt.NDArray[np.float32]) -> None:
        self._allowance = min(BURST, self._allowance + 1.0 / RECOVERY)
        self._was_normal = self._everyone
        self._remember(l2)

    def _remember(self, l2: Sequence[float] | npt.NDArray[np.float32]) -> None:
        if len(self._window) < WINDOW:
            self._window.append(l2)
        else:
            self._window[self._steps % WINDOW] = l2
        self._steps += 1
        if (
            self._steps < REFRESH
            or self._steps % (REFRESH if self._steps < SETTLED else SELDOM) == 0
        ):
            self._median = np.sort(np.array(self._window, np.float32), axis=0)[
                len(self._window) // 2
            ]
            with np.errstate(over="ignore"):
                self._limit = np.where(
                    self._median > 0, np.minimum(self._median * JUMP, _LARGEST), _LARGEST
                )
            self._limits = self._limit.tolist()
