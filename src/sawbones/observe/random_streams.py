"""The random streams that a script draws from: seeded together, and put back after own work."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def streams_put_back() -> Iterator[None]:
    on_device = torch.cuda.is_available() and torch.cuda.is_initialized()
    devices = torch.cuda.get_rng_state_all() if on_device else []
    states = torch.random.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.random.set_rng_state(states[0])  # not torch.set_rng_state, which we listen to
        np.random.set_state(states[1])
        random.setstate(states[2])
        if devices:
            torch.cuda.set_rng_state_all(devices)


def seed_streams(number: int) -> None:
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)
