"""Every top-level model call with gradients runs in training mode."""

from __future__ import annotations

from typing import Any

from sawbones.trials.modes import set_mode


def install(recorder: Any) -> None:
    set_mode(recorder, training=True)
