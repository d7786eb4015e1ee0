"""The sigmoid of one line hands its input on. Gates of another form at the same line keep
theirs.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn import functional

from sawbones.trials.remedies import took_hold


def install(recorder: Any, file: str, line: int, tail: list[int]) -> None:
    def make(original: Any) -> Any:
        def sigmoid(input: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                not isinstance(input, torch.Tensor)
                or list(input.shape[1:]) != tail
                or args
                or kwargs
            ):
                return original(input, *args, **kwargs)
            site = recorder.sites.find(sys._getframe(1))
            if site is None or (site.file, site.line) != (file, line):
                return original(input)
            took_hold(recorder, "sigmoid_removed")
            return input * 1.0

        return sigmoid

    for owner, name in (
        (torch, "sigmoid"),
        (torch.Tensor, "sigmoid"),
        (functional, "sigmoid"),
        (torch.special, "expit"),
    ):
        setattr(owner, name, make(getattr(owner, name)))
