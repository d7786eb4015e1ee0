"""The model is told nothing of its examples: float inputs are zero, token ids all the same. Targets
stay as they are.

Ids that are the same for every example (positions) and 0/1 masks carry nothing of an example and
stay.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from sawbones.observe.census import has_parameters
from sawbones.observe.fingerprints import tensors_in
from sawbones.trials.remedies import took_hold


def install(recorder: Any) -> None:
    real_call = nn.Module.__call__
    real_embedding = functional.embedding
    inside = 0
    token: list[int] = []

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside or not has_parameters(self):
            return real_call(self, *args, **kwargs)
        shapes = {
            tuple(t.shape) for _, t in tensors_in((args, kwargs)) if not t.is_floating_point()
        }
        inside += 1
        try:
            took_hold(recorder, "constant_input")
            return real_call(self, *_blank(args, shapes), **_blank(kwargs, shapes))
        finally:
            inside -= 1

    def embedding(input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(input, torch.Tensor) and input.numel() and _tells_examples_apart(input):
            token.append(int(input.flatten()[0]))
            input = torch.full_like(input, min(token[0], weight.shape[0] - 1))
        return real_embedding(input, weight, *args, **kwargs)

    nn.Module.__call__ = __call__  # type: ignore[method-assign]
    functional.embedding = embedding


def _tells_examples_apart(ids: torch.Tensor) -> bool:
    if ids.dim() == 1:
        return not torch.equal(ids, torch.arange(len(ids), device=ids.device, dtype=ids.dtype))
    return bool((ids != ids[:1]).any())


def _blank(value: Any, shapes: set[tuple[int, ...]]) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() > 0:
        mask = tuple(value.shape) in shapes and bool(((value == 0) | (value == 1)).all())
        return value if mask else torch.zeros_like(value)
    if type(value) in (tuple, list):
        return type(value)(_blank(v, shapes) for v in value)
    return {k: _blank(v, shapes) for k, v in value.items()} if type(value) is dict else value
