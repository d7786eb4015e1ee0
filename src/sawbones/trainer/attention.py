"""Multi-head attention, with a cache of earlier keys and values for decoding.

Shapes: B examples, Q queries, K keys, C model width, H heads, D head width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .positions import rotate

Turn = tuple[Tensor, Tensor]


@dataclass
class KeyValueCache:
    """Keys (already rotated) and values of one layer, in column order."""

    key_BHKD: Tensor | None = None
    value_BHKD: Tensor | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.key_BHKD is not None and self.value_BHKD is not None:
            key = torch.cat((self.key_BHKD, key), dim=2)
            value = torch.cat((self.value_BHKD, value), dim=2)
        self.key_BHKD, self.value_BHKD = key, value
        return key, value


class Attention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def split_heads(self, x_BTC: Tensor) -> Tensor:
        batch, columns, width = x_BTC.shape
        # Split the features first and swap afterwards: a plain view to (B, H, T, D) would mix time
        # with features.
        return x_BTC.view(batch, columns, self.num_heads, width // self.num_heads).transpose(1, 2)

    def keys_values(self, x_BKC: Tensor, turn: Turn | None = None) -> tuple[Tensor, Tensor]:
        key, value = self.split_heads(self.key(x_BKC)), self.split_heads(self.value(x_BKC))
        return (key if turn is None else rotate(key, turn)), value

    def attend(
        self,
        x_BQC: Tensor,
        key: Tensor,
        value: Tensor,
        mask_scores: Tensor,
        turn: Turn | None = None,
    ) -> Tensor:
        query = self.split_heads(self.query(x_BQC))
        if turn is not None:
            query = rotate(query, turn)
        scores = (query @ key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
        # At least float32: the exponentials of float16 scores overflow and bfloat16 ones keep two
        # digits.
        probabilities = torch.softmax(scores.to(mask_scores.dtype) + mask_scores, dim=-1).to(
            value.dtype
        )
        mixed = self.dropout(probabilities) @ value
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def forward(
        self, x_BTC: Tensor, mask_scores: Tensor, turn: Turn | None, cache: KeyValueCache | None
    ) -> Tensor:
        """Self-attention; earlier columns come from the cache."""
        key, value = self.keys_values(x_BTC, turn)
        if cache is not None:
            key, value = cache.append(key, value)
        return self.attend(x_BTC, key, value, mask_scores, turn)
