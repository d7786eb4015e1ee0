"""Model calls whose loss is still on a device: kept until it is known, to name the operator behind one that is not finite."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sawbones.capture import nonfinite
from sawbones.capture.nonfinite import Called, Recorded

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

SHARE = 8  # of the memory for capture, one part in so many


class LateCalls:
    def __init__(self, limit: int) -> None:
        self._limit = limit // SHARE
        self._kept: deque[tuple[int, Called, str | None]] = deque()  # with the step and the type of autocast

    def remember(self, step: int, called: Called, autocast: str | None, awaited: int, batch_bytes: int) -> None:
        """`awaited`: the first step whose loss is not known yet."""
        self._kept.append((step, called, autocast))
        most = max(1, self._limit // max(batch_bytes, 1))
        while self._kept[0][0] < awaited or len(self._kept) > most:
            self._kept.popleft()
            if not self._kept:
                return

    def operator(
        self, recorder: Recorder, step: int, state: Mapping[str, Any] | None, rng: Mapping[str, Any], limit: int
    ) -> tuple[Recorded | None, str]:
        """The one behind the loss of that step. The weights of then are gone: those of the last copy before it must do."""
        called, autocast = next(((called, autocast) for at, called, autocast in self._kept if at == step), (None, None))
        if called is None or state is None:
            return None, "the loss was known some steps later, when what the model had been given was gone"
        roots = recorder.census.roots()
        number = next((i for i, root in enumerate(roots) if root is called[0]), len(state["models"]))
        weights = state["models"][number]["tensors"] if number < len(state["models"]) else {}
        call, why = nonfinite.bad_value_of_old(recorder, called, weights, rng, autocast, limit)
        return call, f"{why} (with the weights of step {state['step']}: the loss was known some steps later)" if why else ""
