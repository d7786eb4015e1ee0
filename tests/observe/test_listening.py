"""Time that is spent on hearing of operators is ours, not the script's."""

from __future__ import annotations

import time
from typing import Any

import torch

from sawbones.observe.operators import Hearings, OperatorStream, after

HEARING_S, WORK_S = 0.02, 0.05


class SlowToAdd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        time.sleep(WORK_S)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_hearing_is_counted_and_the_operator_itself_is_not() -> None:
    stream = OperatorStream(after(lambda *_: time.sleep(HEARING_S)))
    before = Hearings.spent_s
    tensor = torch.zeros(2).as_subclass(SlowToAdd)
    stream.start()
    try:
        tensor + 1
    finally:
        stream.stop()
    heard = Hearings.spent_s - before
    assert HEARING_S <= heard < HEARING_S + WORK_S
