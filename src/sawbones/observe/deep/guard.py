"""The host's state around own computations: random streams and buffers are as before, whatever
happens inside.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

_MAX_BUFFER = 1 << 20


@contextlib.contextmanager
def untouched(models: Sequence[nn.Module]) -> Iterator[None]:
    """Restores RNG streams, and buffers that a recomputed forward (activation checkpointing) wrote
    to.
    """
    cpu = torch.random.get_rng_state()
    cuda = (
        torch.cuda.get_rng_state_all()
        if torch.cuda.is_available() and torch.cuda.is_initialized()
        else []
    )
    drawn = (
        random.getstate(),
        np.random.get_state(),
    )  # a forward may toss a coin: teacher forcing, stochastic depth
    buffers = [
        b
        for model in models
        for b in model.buffers()
        if b.numel() <= _MAX_BUFFER and not b.is_meta and type(b) is torch.Tensor
    ]
    kept = [(b, b._version, b.detach().clone()) for b in buffers if not b.is_inference()]
    try:
        yield
    finally:
        torch.random.set_rng_state(cpu)
        random.setstate(drawn[0])
        np.random.set_state(drawn[1])
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        for buffer, version, before in kept:
            if buffer._version != version:
                with torch.no_grad(), _unsafe_preserve_version_counter(buffer):
                    buffer.copy_(before)
