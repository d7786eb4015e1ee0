"""The host's state around own computations: random streams and buffers are as before, whatever
happens inside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

from sawbones.observe.random_streams import streams_put_back

_MAX_BUFFER = 1 << 20


@contextlib.contextmanager
def untouched(models: Sequence[nn.Module]) -> Iterator[None]:
    """Restores RNG streams, and buffers that a recomputed forward (activation checkpointing) wrote
    to.
    """
    buffers = [
        b
        for model in models
        for b in model.buffers()
        if b.numel() <= _MAX_BUFFER and not b.is_meta and type(b) is torch.Tensor
    ]
    kept = [(b, b._version, b.detach().clone()) for b in buffers if not b.is_inference()]
    try:
        with streams_put_back():  # a forward may toss a coin: teacher forcing, stochastic depth
            yield
    finally:
        for buffer, version, before in kept:
            if buffer._version != version:
                with torch.no_grad(), _unsafe_preserve_version_counter(buffer):
                    buffer.copy_(before)
