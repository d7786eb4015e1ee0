"""What the recorder tells to whoever captures failing steps. Called on every step, so every call
must be cheap.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Protocol

import torch
from torch import nn


class Capturing(Protocol):
    @property
    def brief(self) -> BriefCapturing | None:
        """For steps of which little is asked; None: all of them are told in full."""

    def batch(self, iterator: Any, value: Any, frame: FrameType) -> None:
        """A loader gave a batch. `frame`: at which to begin the search for the user's own."""

    def forward(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        """A model is about to be called with gradients on."""

    def backward_begins(self, loss: Any, root: torch.Tensor | None, data: dict[str, Any]) -> None:
        """`data["value"]` is the loss, at once on a CPU, later from a device."""

    def backward_ends(self) -> None: ...

    def gradients(self, optimizer: torch.optim.Optimizer, norms: Any, skipped: bool) -> None:
        """Gradients are complete and no parameter has changed yet. `norms`: their L2 norms where
        they are known already.
        """

    def step_over(self) -> None: ...

    def crashed(self, error: BaseException, site: Any) -> None:
        """The script is over; its traceback is still there."""

    def closing(self) -> None: ...


class BriefCapturing(Protocol):
    """What brief steps tell instead, where only values are new. Each says whether that was all; if
    not it is told in full.
    """

    is_asked: bool  # for the step under way: its gradients must be shown before they are used

    def batch_again(self, value: Any, frame: FrameType) -> bool: ...

    def forward_again(self, frame: FrameType) -> bool: ...

    def loss_again(self, loss: torch.Tensor, value: float, carried: int) -> bool: ...
