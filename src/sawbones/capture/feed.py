"""The feed: on every step a reference to its batch, the states of the random streams, and the plain
variables of the loop.
"""

from __future__ import annotations

from collections import deque
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.capture.arrivals import (
    Arrival,
    aliased,
    copied,
    loop_frame,
    scalars_of,
    tensors_beside,
    variables_of,
)
from sawbones.capture.randomness import Streams
from sawbones.capture.ring import Ring
from sawbones.observe.fingerprints import tensors_in

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

LOOKS = 16


class Feed:
    def __init__(self, recorder: Recorder, ring: Ring, limit: int) -> None:
        self.arrivals: deque[Arrival] = deque()
        self.batch_bytes = 0  # of the largest that was looked at
        self._r = recorder
        self._ring = ring
        self._limit = limit
        self._streams = Streams()
        self.start_rng = self._streams.read()
        self._num_bytes = 0
        self._copies_batches = False
        self._fed = False  # the current microstep has an arrival
        self._consumed = False  # and it is known which one its model call was given
        self._ahead = False
        self._scalars_at = (-1, -1)
        self._names: tuple[CodeType | None, list[str]] = (
            None,
            [],
        )  # of the plain variables of a loop
        self._dataset: tuple[Any, str, int | None] | None = (
            None  # of the latest batch, its class and size
        )

    def batch(self, iterator: Any, value: Any, frame: FrameType) -> None:
        user = loop_frame(frame)
        dataset = getattr(iterator, "_dataset", None)
        if self._dataset is None or self._dataset[0] is not dataset:
            self._dataset = dataset, type(dataset).__name__, _length(dataset)
        where = (user.f_code.co_filename, user.f_lineno) if user is not None else ("", 0)
        self._arrived("loader", [*where, *self._dataset[1:]], value)

    def forward(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        user = loop_frame(frame)
        variables: dict[str, Any] | None = None
        if self._fed and not self._consumed and (self._ahead or self._looks()):
            self._find_consumed([t for _, t in tensors_in((args, kwargs))])
        if not self._fed:
            inputs = [t for _, t in tensors_in((args, kwargs))]
            where = [user.f_code.co_filename, user.f_lineno] if user is not None else ["", 0]
            variables = variables_of(user)
            value = {"args": args, "kwargs": kwargs, "variables": tensors_beside(variables, inputs)}
            self._arrived("forward", [*where, type(module).__name__, None], value)
        at = (self._r.step, self._r.microstep)
        if self._scalars_at != at and self.arrivals:
            self._scalars_at = at
            used = self.arrivals[-1]
            if not used.used:
                used = next((a for a in reversed(self.arrivals) if a.used), used)
            code = user.f_code if user is not None else None
            known = self._names[1] if self._names[0] is code and not self._looks() else None
            used.scalars = scalars_of(
                variables if variables is not None else variables_of(user), known
            )
            if (
                known is None
            ):  # a loop's plain variables are nearly always the same: all are looked at now and then
                self._names = code, list(used.scalars)

    # the same for brief steps, where nothing but values is new; False where that is not so

    def batch_again(self, value: Any, frame: FrameType) -> bool:
        r = self._r
        step = r.step
        if (
            step >= self._ring.due_at
            or self._copies_batches
            or step % LOOKS < 2
            or not self.arrivals
        ):
            return False
        last, user = self.arrivals[-1], loop_frame(frame)
        if (
            user is None
            or last.kind != "loader"
            or user.f_lineno != last.key[1]
            or user.f_code.co_filename != last.key[0]
        ):
            return False
        at = (step, r.microstep)
        self.arrivals.append(
            Arrival(
                *at,
                "loader",
                last.key,
                aliased(value),
                self._streams.read(),
                at,
                {},
                None,
                True,
                last.num_bytes,
            )
        )
        self._num_bytes += last.num_bytes
        if self.arrivals[0].step < step - 1 and (
            not self._ring.copies or self._num_bytes > self._limit // 2
        ):
            self._forget()
        self._fed, self._consumed = True, False
        return True

    def forward_again(self, frame: FrameType) -> bool:
        r = self._r
        at = (r.step, r.microstep)
        if self._scalars_at == at:
            return True
        user = loop_frame(frame)
        if (
            not self._fed
            or self._ahead
            or user is None
            or self._names[0] is not user.f_code
            or at[0] % LOOKS == 0
        ):
            return False
        self._scalars_at = at
        if self._names[1]:
            self.arrivals[-1].scalars = scalars_of(variables_of(user), self._names[1])
        return True

    def over(self) -> None:
        """A backward pass or a step: what comes next is fed anew."""
        self._fed = False

    def _find_consumed(self, inputs: list[torch.Tensor]) -> None:
        """Some loops fetch a batch ahead: then the model is given tensors of the batch before the
        latest.
        """
        self._consumed = True
        latest = self.arrivals[-1]
        if not self._ahead and (
            not inputs
            or len(self.arrivals) < 2
            or latest.kind != "loader"
            or _share(inputs, latest)
        ):
            return
        for arrival in list(self.arrivals)[-3:-1]:
            if arrival.kind in ("loader", "ahead") and _share(inputs, arrival):
                self._ahead = True
                latest.used = False
                arrival.used, arrival.kind = True, "ahead"
                arrival.step, arrival.microstep, arrival.rng = (
                    self._r.step,
                    self._r.microstep,
                    self._streams.read(),
                )
                return

    def _arrived(self, kind: str, key: list[Any], value: Any) -> None:
        step = self._r.step
        if self.arrivals and not self._copies_batches and self.arrivals[-1].changed_since():
            self._copies_batches = True  # batches that the loop writes over are copied from now on
        if step >= self._ring.due_at:
            self._ring.copy()
        if self._copies_batches:
            value = copied(value)
        else:
            value = aliased(value)
        at = (step, self._r.microstep)
        arrival = Arrival(*at, kind, key, value, self._streams.read(), at)
        if self._looks():
            arrival.look()
            self.batch_bytes = max(self.batch_bytes, arrival.num_bytes)
        arrival.num_bytes = self.batch_bytes
        self.arrivals.append(arrival)
        self._num_bytes += arrival.num_bytes
        self._forget()
        self._fed, self._consumed = True, False

    def _looks(self) -> bool:
        """What a loop does with its batches it does from the beginning, and looking at them takes
        longer than keeping them.
        """
        return self._r.step < LOOKS or self._r.step % LOOKS == 0

    def _forget(self) -> None:
        step = self._r.step
        oldest = self._ring.oldest
        needed = oldest if oldest is not None else step - 1
        while self.arrivals and (
            self.arrivals[0].step < needed or self._num_bytes > self._limit // 2
        ):
            # Backward passes without any step, as tests of models have them, would keep all batches.
            if self.arrivals[0].step == step and self._num_bytes <= self._limit:
                break
            self._num_bytes -= self.arrivals.popleft().num_bytes
        if self.arrivals:
            self._ring.forget_before(self.arrivals[0].step)


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except TypeError:  # none, or one without an end
        return None


def _share(inputs: list[torch.Tensor], arrival: Arrival) -> bool:
    known = {t.untyped_storage().data_ptr() for t in arrival.tensors() if t.layout is torch.strided}
    return any(
        t.layout is torch.strided and t.untyped_storage().data_ptr() in known for t in inputs
    )
