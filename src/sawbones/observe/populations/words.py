"""The words of texts that a model is given as ids: which buckets they fall into."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.observe.fingerprints import tensors_in

BUCKETS = 512  # that ids are dealt out to: two of a text's words rarely meet in one
LEAST_WORDS = 5

Bags = npt.NDArray[np.bool_]


def bags_of(given: Any) -> Bags | None:
    """For each text of a call, the buckets of its ids: of rows of ids, or of ids one after the other
    with the place where each text begins.
    """
    whole = [t for _, t in tensors_in(given) if _is_ids(t)]
    rows = [t for t in whole if t.dim() == 2 and t.shape[1] >= LEAST_WORDS]
    if rows:
        ids = max(rows, key=lambda t: t.numel()).detach().numpy()
        return _bags(np.repeat(np.arange(len(ids)), ids.shape[1]), ids.reshape(-1), len(ids))
    flat = [t.detach().numpy() for t in whole if t.dim() == 1]
    if len(flat) != 2:
        return None
    ids, starts = sorted(flat, key=len, reverse=True)
    begins = len(starts) > 1 and starts[0] == 0 and starts[-1] <= len(ids)
    if not begins or np.any(np.diff(starts) < 0) or len(starts) >= len(ids):
        return None
    text = np.searchsorted(starts, np.arange(len(ids)), side="right") - 1
    return _bags(text, ids, len(starts))


def _is_ids(tensor: torch.Tensor) -> bool:
    plain = tensor.device.type == "cpu" and tensor.numel() > 0 and tensor.dim() in (1, 2)
    return plain and tensor.dtype in (torch.int32, torch.int64)


def _bags(text: Any, ids: Any, num: int) -> Bags:
    mixed = (ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    found = np.zeros((num, BUCKETS), np.bool_)
    found[text, (mixed % np.uint64(BUCKETS)).astype(np.int64)] = True
    return found
