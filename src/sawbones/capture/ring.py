"""The ring: the two latest copies of weights and optimizer state, for failures that are seen after
the update, and for gradients that are carried from step to step.

They are spaced so that copying takes less than half a percent of the run, and left out where two of
them do not fit, or once it is clear that they are not needed: on a CPU a failure is seen at once,
and the live objects are what its step began with.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from sawbones.capture import snapshot

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

COPY_SHARE = 0.004  # of the run's time goes into copies of the weights, at most
MIN_SPACING = 10  # steps between two of them
# where a loss is on a device, and known up to 64 steps later: one of two copies must be from before
LATE_SPACING = 80
MAX_SPACING = 500
UNDECIDED = 16  # steps at the beginning, before it is known how the run goes


class Ring:
    def __init__(self, recorder: Recorder, scalers: snapshot.Scalers, limit: int) -> None:
        self.copies: deque[dict[str, Any]] = deque()
        self.due_at: float = 0  # step of the next copy; never, once the state is known not to fit
        self.is_late = False  # losses are known only some steps later
        self._is_needed = False
        self._r = recorder
        self._scalers = scalers
        self._limit = limit
        self._fits = True
        self._began = time.perf_counter()

    @property
    def oldest(self) -> int | None:
        """The step from which on batches are needed."""
        return int(self.copies[0]["step"]) if self.copies else None

    def need(self) -> None:
        if not self._is_needed:
            self._is_needed = True
            self.due_at = min(self.due_at, self._r.step + 1) if self._fits else math.inf

    def copy(self) -> None:
        step = self._r.step
        if step >= UNDECIDED and not self._is_needed:
            self.due_at = math.inf
            self.copies.clear()
            return
        if not self._r.census.optimizers() and not self._r.census.roots():
            return
        began = time.perf_counter()
        live = snapshot.collect(self._r, self._scalers)
        if self._is_too_large(live):
            return
        self.copies.append(snapshot.cloned(live))
        while len(self.copies) > 2:
            self.copies.popleft()
        cost = time.perf_counter() - began
        each = (began - self._began) / max(step, 1)
        least = LATE_SPACING if self.is_late else MIN_SPACING
        self.due_at = step + min(
            MAX_SPACING,
            max(least, math.ceil(cost / max(COPY_SHARE * each, 1e-9)) if step else least),
        )

    def complete(self, at: tuple[int, int]) -> None:
        """A copy in the middle of an accumulation is worth nothing without the gradients so far."""
        if self.copies and at == (self.copies[-1]["step"], self.copies[-1]["microstep"]):
            self.copies[-1]["gradients"] = snapshot.gradients_of(self._r)
            self._is_too_large(self.copies[-1])

    def _is_too_large(self, state: dict[str, Any]) -> bool:
        if 2 * snapshot.size_of(state) <= self._limit // 2:
            return False
        self._fits = False
        self.due_at = math.inf
        self.copies.clear()
        return True

    def is_of(self, step: int) -> bool:
        """Whether the latest copy was made in that step."""
        return bool(self.copies) and bool(self.copies[-1]["step"] == step)

    def last_before(self, step: int) -> dict[str, Any] | None:
        return next((copy for copy in reversed(self.copies) if copy["step"] <= step), None)

    def last_good_before(self, step: int) -> dict[str, Any] | None:
        """One whose weights are not spoiled already, where there is one."""
        good = (c for c in reversed(self.copies) if c["step"] <= step and not snapshot.has_nan(c))
        return next(good, None) or self.last_before(step)

    def forget_before(self, step: int) -> None:
        """The batches between a copy and that step are gone."""
        while self.copies and self.copies[0]["step"] < step:
            self.copies.popleft()
