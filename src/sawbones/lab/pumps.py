"""A small model of whether a pump fails, for pipelines whose fault lies in the rows."""

from __future__ import annotations

from torch import Tensor, nn


class Fails(nn.Module):
    def __init__(self, columns: int, width: int = 48) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 2),
        )

    def forward(self, inputs_BF: Tensor) -> Tensor:
        scores: Tensor = self.layers(inputs_BF)
        return scores
