"""The scores that one line gives to a loss over classes, turned round."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn import functional

from sawbones.trials.remedies import took_hold


def install(recorder: Any, file: str, line: int) -> None:
    original = functional.cross_entropy

    def cross_entropy(input: Any, *args: Any, **kwargs: Any) -> Any:
        site = recorder.sites.find(sys._getframe(1))
        if site is None or (site.file, site.line) != (file, line) or not torch.is_grad_enabled():
            return original(input, *args, **kwargs)
        took_hold(recorder, "scores_turned")
        return original(-input, *args, **kwargs)

    functional.cross_entropy = cross_entropy
