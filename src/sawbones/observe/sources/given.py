"""What a model is given, as rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sawbones.observe.sources.containers import Numbers, hash_rows

COLUMNS_COMPARED = 256


def main_input(found: Sequence[tuple[str, Any]]) -> Any:
    tables = [t for _, t in found if t.dim() >= 2 and t.device.type == "cpu" and t.shape[0] > 0]
    real = [t for t in tables if t.is_floating_point() and not t.requires_grad]
    return max(real or tables, key=lambda t: t.numel(), default=None)


def as_rows(tensor: Any) -> Numbers | None:
    plain = tensor.detach()
    if plain.is_complex() or plain.is_quantized or plain.numel() > 1 << 22:
        return None
    numbers: Numbers = plain.float().numpy().reshape(plain.shape[0], -1)
    return numbers


def column_hashes(numbers: Numbers) -> list[int]:
    """One hash for each column of a batch."""
    width = min(numbers.shape[1], COLUMNS_COMPARED)
    hashes: list[int] = hash_rows(np.ascontiguousarray(numbers[:, :width].T)).tolist()
    return hashes
