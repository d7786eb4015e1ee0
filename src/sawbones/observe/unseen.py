"""What we compute ourselves must not appear in a mode of the host's that traces, counts or changes
operators.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

num_dispatch_modes = torch._C._len_torch_dispatch_stack
is_profiled = torch._C._autograd._profiler_enabled
_enable_events = torch._C._autograd._enable_record_function
_unprofiled = threading.local()


def unseen() -> Any:
    if num_dispatch_modes() or is_profiled():
        return _without_any_mode()
    return torch._C.DisableTorchFunction()


@contextlib.contextmanager
def _without_events() -> Iterator[None]:
    """Not in the events of a profiler of the host's. Nested: only the outermost switches back."""
    if not is_profiled() or getattr(_unprofiled, "on", False):
        yield
        return
    _unprofiled.on = True
    _enable_events(False)
    try:
        yield
    finally:
        _enable_events(True)
        _unprofiled.on = False


@contextlib.contextmanager
def _without_any_mode() -> Iterator[None]:
    with torch._C.DisableTorchFunction(), _without_dispatch():
        yield


def without_dispatch_modes() -> Any:
    """For code of ours that enters function modes itself."""
    if num_dispatch_modes() or is_profiled():
        return _without_dispatch()
    return contextlib.nullcontext()


@contextlib.contextmanager
def _without_dispatch() -> Iterator[None]:
    with _disable_current_modes(), _without_events():
        yield
