"""Mixed precision: autocast for the forward pass, and a loss scaler where float16 needs one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

AMP_DTYPES = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """Parameters stay in float32; bfloat16 has float32's range and needs no scaler, float16 does.

    With `amp` off the scaler is a pass-through, so that one code path serves all three.
    """

    def __init__(self, amp: str, device: torch.device) -> None:
        self.dtype = AMP_DTYPES[amp]
        self.device = device
        self.scaler = GradScaler(device.type, enabled=self.dtype == torch.float16)
        self.skipped = 0

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(
            self.device.type, dtype=self.dtype or torch.bfloat16, enabled=self.dtype is not None
        )

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(self.scaler.scale(loss))

    def unscale(self, optimizer: Optimizer) -> None:
        """Before anything looks at the gradients: a norm of scaled gradients clips at max_norm /
        scale.
        """
        self.scaler.unscale_(optimizer)

    def step(self, optimizer: Optimizer) -> bool:
        """Step and update the scale; False when the scaler left the step out because a gradient was
        not finite.
        """
        before = self.scaler.get_scale()
        self.scaler.step(optimizer)
        self.scaler.update()
        # The scale falls exactly when the step was left out.
        taken = bool(self.scaler.get_scale() >= before)
        self.skipped += not taken
        return taken

    @property
    def may_skip(self) -> bool:
        return bool(self.scaler.is_enabled())

    def scale(self) -> float:
        return float(self.scaler.get_scale())

    def state(self) -> dict[str, Any]:
        return {"scaler": self.scaler.state_dict(), "skipped": self.skipped}

    def restore(self, record: dict[str, Any]) -> None:
        self.scaler.load_state_dict(record["scaler"])
        self.skipped = int(record["skipped"])
