"""Model calls whose loss is still on a device: kept until it is known, to name the operator behind
one that is not finite.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sawbones.capture import nonfinite
from sawbones.capture.nonfinite import Called, Recorded

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

SHARE = 8  # of the memory for capture, one part in so many
GONE = "the loss was known some steps later, when what the model had been given was gone"
NO_COPY = "the loss was known some steps later, and no copy of the weights of before was at hand"


class LateCalls:
    def __init__(self, limit: int) -> None:
        self._limit = limit // SHARE
        self._kept: deque[tuple[int, Called, str | None]] = (
            deque()
        )  # with the step and the type of autocast
        self._took_s = 0.0  # repeating the latest, without a backward pass

    def remember(
        self, step: int, called: Called, autocast: str | None, awaited: int, batch_bytes: int
    ) -> None:
        """`awaited`: the first step whose loss is not known yet. The one before it may have spoiled
        its weights.
        """
        self._kept.append((step, called, autocast))
        most = max(2, self._limit // max(batch_bytes, 1))
        while self._kept[0][0] < awaited - 1 or len(self._kept) > most:
            self._kept.popleft()
            if not self._kept:
                return

    def value(
        self,
        recorder: Recorder,
        step: int,
        state: Mapping[str, Any] | None,
        rng: Mapping[str, Any],
        limit: int,
    ) -> tuple[Recorded | None, str]:
        """The operator behind the loss of that step. The weights of then are gone: those of the
        last copy before it must do.
        """
        why = GONE if state is not None else NO_COPY
        for called, autocast, weights in self._of(recorder, step, state):
            began = time.perf_counter()
            call, why = nonfinite.bad_value_of_old(recorder, called, weights, rng, autocast, limit)
            self._took_s = time.perf_counter() - began
            if call is not None:
                return call, ""
        return None, _with_weights(why, state)

    def gradient(
        self,
        recorder: Recorder,
        step: int,
        state: Mapping[str, Any] | None,
        rng: Mapping[str, Any],
        scale: float,
        limit: int,
    ) -> tuple[Recorded | None, str]:
        """The operator behind the gradients of that step: the loss of the next one is bad, and not
        by its own doing.
        """
        why = GONE
        for called, autocast, weights in self._of(recorder, step, state):
            if self._took_s > nonfinite.QUICK:
                return (
                    None,
                    (
                        f"the model's call alone takes {self._took_s:.0f} s on the host, and "
                        "its backward pass longer"
                    ),
                )
            call, why = nonfinite.bad_gradient_of_old(
                recorder, called, weights, rng, autocast, scale, limit
            )
            if call is not None:
                return call, ""
        return None, _with_weights(why, state)

    def _of(
        self, recorder: Recorder, step: int, state: Mapping[str, Any] | None
    ) -> Iterator[tuple[Called, str | None, Mapping[str, Any]]]:
        """The model calls of that step, each with the weights that were copied."""
        roots = recorder.census.roots()
        for at, called, autocast in [*self._kept] if state is not None else []:
            number = next((i for i, root in enumerate(roots) if root is called[0]), -1)
            if at == step and state is not None and 0 <= number < len(state["models"]):
                yield called, autocast, state["models"][number]["tensors"]


def _with_weights(why: str, state: Mapping[str, Any] | None) -> str:
    if state is None or why in (GONE, NO_COPY):
        return why
    return f"{why} (with the weights of step {state['step']}: the loss was known some steps later)"
