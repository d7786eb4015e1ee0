"""Forecasts from a window: whether the first numbers that have to be predicted are the last ones
that the model is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.modules import ModuleCall
from sawbones.properties.inputs import tensors_in

_MAX_FEATURES = 32
_MAX_ELEMENTS = 1 << 22
_FEWEST_ROWS = 4


def overlap(call: ModuleCall, loss: Found) -> dict[str, Any] | None:
    """How many of the first targets are the end of the model's own input, in every row; None when
    there is no such window.
    """
    target = loss.target.tensor() if loss.target is not None else None
    if (
        target is None
        or not target.is_floating_point()
        or not 1 <= target.dim() <= 3
        or target.numel() > _MAX_ELEMENTS
    ):
        return None
    goal = target.detach()
    goal = goal.squeeze(-1) if goal.dim() == 3 and goal.shape[-1] == 1 else goal
    for given in tensors_in((call.args, call.kwargs)):
        if (
            not given.is_floating_point()
            or given.numel() > _MAX_ELEMENTS
            or given.dim() not in (2, 3)
        ):
            continue
        for window, wanted, feature in _pairs(given.detach(), goal):
            common = _common(window, wanted)
            if common and not _answers_every_step(call, window):
                return {
                    "common": common,
                    "horizon": int(wanted.shape[1]),
                    "window": int(window.shape[1]),
                    "feature": feature,
                    "target_shape": tuple(target.shape),
                }
    return None


def _pairs(
    given: torch.Tensor, goal: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, int | None]]:
    """Input and target as (row, time[, feature]), with the feature of the input that was picked."""
    if given.dim() == 3 and goal.dim() == 3 and given.shape[-1] == goal.shape[-1]:
        yield given, goal, None
        yield given.transpose(0, 1), goal.transpose(0, 1), None
    elif given.dim() == 2 and goal.dim() == 2 and goal.shape[1] > 1:
        yield given, goal, None
    elif given.dim() == 3 and goal.dim() <= 2:
        wanted = goal[:, None] if goal.dim() == 1 else goal
        for feature in range(min(given.shape[-1], _MAX_FEATURES)):
            for form in (given[..., feature], given[..., feature].t()):
                yield form, wanted, feature
        for channel in (
            range(min(given.shape[1], _MAX_FEATURES)) if given.shape[1] < given.shape[2] else ()
        ):
            yield given[:, channel], wanted, channel


def _answers_every_step(call: ModuleCall, window: torch.Tensor) -> bool:
    """One answer for each step of the window, of which the loss leaves out the first ones: those
    are meant to overlap.
    """
    return any(
        window.shape[1] in answer.shape
        for answer in tensors_in(call.output)
        if answer.is_floating_point()
    )


def _common(window: torch.Tensor, wanted: torch.Tensor) -> int:
    """The largest number of steps that end the one and begin the other, in all rows and not by
    chance.
    """
    rows, length, horizon = wanted.shape[0], window.shape[1], wanted.shape[1]
    # As long as each other: the input itself (an autoencoder), or every step's next one; those are
    # looked at elsewhere.
    if (
        window.shape[0] != rows
        or rows < _FEWEST_ROWS
        or length <= horizon
        or window.shape[2:] != wanted.shape[2:]
    ):
        return 0
    for common in range(horizon, 0, -1):
        ending, beginning = window[:, length - common :], wanted[:, :common]
        if torch.equal(ending, beginning.to(ending.dtype)):
            different = ending.reshape(rows, -1).unique(dim=0).shape[0]
            return common if different > rows // 2 else 0
    return 0
