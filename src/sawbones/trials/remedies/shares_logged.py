"""A loss over classes at one line gets the logarithm of the probabilities that it is given: taking
the softmax of that gives the probabilities themselves. Scores that are no probabilities stay.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn import functional

from sawbones.trials.remedies import took_hold

ROUNDING = 2e-3  # of a sum of probabilities


def install(recorder: Any, file: str, line: int, dim: int) -> None:
    original = functional.cross_entropy

    def cross_entropy(input: Any, *args: Any, **kwargs: Any) -> Any:
        site = recorder.sites.find(sys._getframe(1))
        if site is None or (site.file, site.line) != (file, line) or not _are_shares(input, dim):
            return original(input, *args, **kwargs)
        took_hold(recorder, "shares_logged")
        return original(input.clamp_min(torch.finfo(input.dtype).tiny).log(), *args, **kwargs)

    functional.cross_entropy = cross_entropy


def _are_shares(input: Any, dim: int) -> bool:
    if not isinstance(input, torch.Tensor) or input.dim() <= dim:
        return False
    values = input.detach().float()
    return bool((values >= 0).all()) and bool(((values.sum(dim) - 1).abs() <= ROUNDING).all())
