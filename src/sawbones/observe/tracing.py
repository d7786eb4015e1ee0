"""Whether torch is only tracing: a compiler reads the program, or runs it on tensors that hold no
values.
"""

from __future__ import annotations

import torch

_FAKE = torch._C._TorchDispatchModeKey.FAKE
# bound once: asked for every operator
_is_compiling = torch.compiler.is_compiling
_is_traced = torch._C._is_tracing
_dispatch_mode = torch._C._get_dispatch_mode


def is_tracing() -> bool:
    # The compiler of torch 2.11 calls functions that it keeps whole, losses among them, on fake
    # tensors without saying so.
    return _is_compiling() or _is_traced() or _dispatch_mode(_FAKE) is not None
