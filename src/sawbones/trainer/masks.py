"""Attention masks. One convention: True = may attend. Shapes broadcast to (B, heads, queries,
keys).
"""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """The queries are the last `num_queries` of the keys, so that the same rule serves a cache of
    earlier keys.
    """
    first = num_keys - num_queries
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(diagonal=first)[
        None, None
    ]


def padding_mask(key_mask_BK: Tensor) -> Tensor:
    """Every query of an example may see every real key of that example. Masked are keys, not
    queries.
    """
    return key_mask_BK[:, None, None, :]


def compose(*masks: Tensor) -> Tensor:
    """What every mask allows.

    No row ends up empty: rows are padded on the right and start with a real token (checked at
    collation), and the causal rule lets every query see column 0.
    """
    composed = masks[0]
    for mask in masks[1:]:
        composed = composed & mask
    return composed


def as_scores(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The one conversion from booleans: 0 where attention is allowed, -inf where it is not, to be
    added to scores.
    """
    blocked = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return blocked.masked_fill_(~mask, float("-inf"))
