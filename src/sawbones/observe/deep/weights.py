"""Histograms of the parameters, by a sample of each that is read in one copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from sawbones.observe.deep.measure import is_plain, subset
from sawbones.observe.deep.modules import Paths
from sawbones.schema import Weights

_SAMPLE = 4096  # values of a parameter
_CLASSES = 40
_MAX = 160  # parameters
_LEAST = 16  # values: fewer have no distribution


def histograms(tops: Iterable[nn.Module], paths: Paths) -> tuple[Weights, ...]:
    """The parameters that matter are looked at where there are many: the larger ones."""
    known: dict[int, tuple[str, torch.Tensor]] = {}
    for top in tops:
        for parameter in top.parameters():
            if parameter.numel() >= _LEAST and is_plain(parameter):
                name = paths.parameters.get(id(parameter), "")
                known.setdefault(id(parameter), (name, parameter))
    chosen = list(known.values())
    if len(chosen) > _MAX:
        least = sorted((p.numel() for _, p in chosen), reverse=True)[_MAX - 1]
        chosen = [(name, p) for name, p in chosen if p.numel() >= least][:_MAX]
    return tuple(
        _histogram(name, tuple(parameter.shape), values)
        for (name, parameter), values in zip(chosen, _on_host(chosen), strict=True)
    )


def _on_host(chosen: list[tuple[str, torch.Tensor]]) -> list[Any]:
    """One copy from each device, not one for each parameter."""
    samples = [subset(p.detach(), _SAMPLE).float() for _, p in chosen]
    found: list[Any] = [None] * len(samples)
    for device in {sample.device for sample in samples}:
        here = [i for i, sample in enumerate(samples) if sample.device == device]
        values = torch.cat([samples[i] for i in here]).cpu().numpy()
        ends = np.cumsum([samples[i].numel() for i in here])[:-1]
        for i, part in zip(here, np.split(values, ends), strict=True):
            found[i] = part
    return found


def _histogram(name: str, shape: tuple[int, ...], values: Any) -> Weights:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    counts, _ = np.histogram(finite, bins=_CLASSES if high > low else 1)
    return Weights(name, shape, low, high, tuple(counts.tolist()), len(values) - len(finite))
