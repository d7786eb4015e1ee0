"""Versions and hardware, as far as they can be told without starting anything."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

_PACKAGES = ("numpy", "transformers", "accelerate", "lightning", "pytorch_lightning", "deepspeed")


def describe_environment() -> dict[str, Any]:
    import torch

    from sawbones import __version__

    found: dict[str, Any] = {
        "sawbones": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["gpu"] = torch.cuda.get_device_name()
    for name in _PACKAGES:
        if name in sys.modules:
            found[name] = getattr(sys.modules[name], "__version__", "?")
    return found
