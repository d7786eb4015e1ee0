"""What we compute ourselves must not appear in a mode of the host's that traces, counts or changes
operators.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

num_dispatch_modes = torch._C._len_torch_dispatch_stack


def unseen() -> Any:
    return _without_any_mode() if num_dispatch_modes() else torch._C.DisableTorchFunction()


@contextlib.contextmanager
def _without_any_mode() -> Iterator[None]:
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def without_dispatch_modes() -> Any:
    """For code of ours that enters function modes itself."""
    return _disable_current_modes() if num_dispatch_modes() else contextlib.nullcontext()
