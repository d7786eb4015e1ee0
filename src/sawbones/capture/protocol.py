"""Failures of the order of calls: a scaler told twice, a rank whose parameter got no gradient. No
operator is to blame for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch

KEPT = 24
_STEPS = ("unscale_", "step", "update")

_TOY = [
    "model = torch.nn.Linear(2, 1)",
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    'scaler = torch.amp.GradScaler("cpu")',
    "loss = model(torch.ones(1, 2)).sum()",
]
_LINES = {
    "scale": "loss = scaler.scale(model(torch.ones(1, 2)).sum())",
    "backward": "loss.backward()",
    "unscale_": "scaler.unscale_(optimizer)",
    "step": "scaler.step(optimizer)",
    "update": "scaler.update()",
}
# A process group of one rank is enough: the reducer notices in the next forward that a gradient
# never came.
_UNUSED = [
    (
        'torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), '
        "rank=0, world_size=1)"
    ),
    "",
    "",
    "class Model(torch.nn.Module):",
    "    def __init__(self):",
    "        super().__init__()",
    "        self.used, self.unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)",
    "",
    "    def forward(self, x):",
    "        return self.used(x)",
    "",
    "",
    "model = torch.nn.parallel.DistributedDataParallel(Model())",
    "for _ in range(2):",
    "    model(torch.ones(1, 2)).sum().backward()",
]


class Protocol:
    """Calls of a scaler and backward passes, in the order in which the rebuilt script made them."""

    def __init__(self) -> None:
        self.calls: deque[str] = deque(maxlen=KEPT)
        self._inside = False

    def install(self) -> None:
        for name in ("scale", *_STEPS):
            self._wrap(torch.amp.GradScaler, name)
        self._wrap(torch.autograd, "backward")

    def _wrap(self, owner: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def told(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # step() unscales by itself
                return original(*args, **kwargs)
            self.calls.append(name)
            self._inside = True
            try:
                return original(*args, **kwargs)
            finally:
                self._inside = False

        setattr(owner, name, told)

    def script(self, error: str, message: str, in_scaler: bool) -> list[str] | None:
        """The lines after the imports, None where the failure is no matter of order."""
        if error == "RuntimeError" and message.startswith(
            "Expected to have finished reduction in the prior iteration"
        ):
            return list(_UNUSED)
        if in_scaler and self.calls:
            return [*_TOY, *(_LINES[name] for name in self.calls)]
        return None


def raised_in_scaler(error: BaseException) -> bool:
    tb = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename.endswith("grad_scaler.py"):
            return True
        tb = tb.tb_next
    return False
