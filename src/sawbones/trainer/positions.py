"""Where a token stands: sinusoidal and learned codes are added to the embedding, rotary ones turn
queries and keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .errors import PositionOutOfRange


def check_bounds(num_columns: int, max_positions: int) -> None:
    """Compared by width, on the host: asking a device for its largest position would stall every
    step.
    """
    if num_columns > max_positions:
        raise PositionOutOfRange(
            f"a sequence of {num_columns} positions does not fit the table of {max_positions}; "
            "shorten the text (max_tokens) or build the model with a larger max_positions"
        )


def sinusoidal_table(num_positions: int, width: int) -> Tensor:
    """sin and cos of the position at wavelengths from 2 pi to 10000 * 2 pi, computed in float64."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10_000.0) / width))
    table = torch.zeros(num_positions, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : width // 2]
    return table


class SinusoidalPositions(nn.Module):
    table: Tensor

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        table = sinusoidal_table(max_positions, d_model).to(torch.get_default_dtype())
        self.register_buffer("table", table, persistent=False)

    def forward(self, positions_BT: Tensor) -> Tensor:
        return self.table[positions_BT]


class LearnedPositions(nn.Module):
    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(max_positions, d_model)

    def forward(self, positions_BT: Tensor) -> Tensor:
        codes: Tensor = self.embedding(positions_BT)
        return codes


class RotaryPositions(nn.Module):
    """Gives the angles; `rotate` applies them. Relative by construction: q.k keeps differences of
    positions only.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, max_positions: int, d_head: int) -> None:
        super().__init__()
        rate = 10_000.0 ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
        angle = torch.arange(max_positions, dtype=torch.float64)[:, None] * rate
        self.register_buffer("cos", angle.cos().to(torch.get_default_dtype()), persistent=False)
        self.register_buffer("sin", angle.sin().to(torch.get_default_dtype()), persistent=False)

    def forward(self, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin of shape (B, 1, T, d_head / 2), the 1 for the heads."""
        return self.cos[positions_BT][:, None], self.sin[positions_BT][:, None]


def rotate(x_BHTD: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (x[2i], x[2i+1]) by its angle, in the table's precision even under
    autocast.
    """
    cos, sin = turn
    even, odd = x_BHTD[..., 0::2].to(cos.dtype), x_BHTD[..., 1::2].to(cos.dtype)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2).to(x_BHTD.dtype)
