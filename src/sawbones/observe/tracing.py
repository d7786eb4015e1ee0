"""Whether torch is only tracing: a compiler reads the program, or runs it on tensors that hold no
values.
"""

from __future__ import annotations

import torch

_FAKE = torch._C._TorchDispatchModeKey.FAKE


def is_tracing() -> bool:
    # The compiler of torch 2.11 calls functions that it keeps whole, losses among them, on fake
    # tensors without saying so.
    return (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch._C._get_dispatch_mode(_FAKE) is not None
    )
