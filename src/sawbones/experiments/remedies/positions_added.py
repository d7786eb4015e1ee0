"""Add sinusoidal codes to what one module returns, along its dimension of time."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook


def install(recorder: Any, module: str, time_dim: int, shape: list[int], channels_first: bool = False) -> None:
    wanted: dict[int, bool] = {}

    def is_wanted(candidate: Any) -> bool:
        if id(candidate) not in wanted:
            for root in recorder.census.roots():
                for path, member in root.named_modules():
                    wanted[id(member)] = path == module
        return wanted.get(id(candidate), False)

    def add(candidate: Any, args: Any, output: Any) -> Any:
        fits = isinstance(output, torch.Tensor) and output.dim() == len(shape) and output.dim() >= 3 and output.is_floating_point()
        if not fits or not is_wanted(candidate):
            return None
        if channels_first:
            rows = output.flatten(2).transpose(1, 2)
            return (rows + _codes(rows, 1)).transpose(1, 2).reshape(output.shape)
        return output + _codes(output, time_dim) if output.dim() == 3 else None

    register_module_forward_hook(add)


def _codes(output: torch.Tensor, time_dim: int) -> torch.Tensor:
    """Codes as large as the vectors themselves, so that they are seen next to them."""
    length, width = output.shape[time_dim], output.shape[-1]
    place = torch.arange(length, device=output.device, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=output.device, dtype=torch.float32) * (-math.log(10_000.0) / width))
    code = torch.zeros(length, width, device=output.device)
    code[:, 0::2] = torch.sin(place * rate)
    code[:, 1::2] = torch.cos(place * rate)[:, : width // 2]
    size = output.detach().float().std().clamp(min=0.02)
    code = (code * size).to(output.dtype)
    return code[:, None] if time_dim == 0 else code[None]
