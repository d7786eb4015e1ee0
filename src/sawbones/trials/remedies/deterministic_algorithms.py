"""Every operator that has a deterministic form uses it; those without warn only. No stream is
seeded by this.
"""

from __future__ import annotations

import os
from typing import Any

import torch


def install(recorder: Any) -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # costs time, changes nothing here
