"""Add sinusoidal codes to the vectors that one layer, or one operator of the script, makes of its
input, along their time.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook

from sawbones.observe.deep.names import name_of
from sawbones.observe.operators import OperatorStream, after


def install(
    recorder: Any,
    module: str | None,
    time_dim: int,
    shape: list[int],
    channels_first: bool = False,
    op: str = "",
    file: str = "",
    line: int = 0,
) -> None:
    def with_codes(output: Any) -> Any:
        if (
            not isinstance(output, torch.Tensor)
            or output.dim() != len(shape)
            or output.dim() < 3
            or not output.is_floating_point()
        ):
            return None
        if channels_first:
            rows = output.flatten(2).transpose(1, 2)
            return (rows + _codes(rows, 1)).transpose(1, 2).reshape(output.shape)
        return output + _codes(output, time_dim) if output.dim() == 3 else None

    if module is None:
        _at_line(recorder, op, (file, line), with_codes).start()  # stays for the whole run
    else:
        _at_layer(recorder, module, with_codes)


def _at_layer(recorder: Any, module: str, with_codes: Any) -> None:
    wanted: dict[int, bool] = {}

    def is_wanted(candidate: Any) -> bool:
        if id(candidate) not in wanted:
            for root in recorder.census.roots():
                for path, member in root.named_modules():
                    wanted[id(member)] = path == module
        return wanted.get(id(candidate), False)

    def add(candidate: Any, args: Any, output: Any) -> Any:
        return with_codes(output) if is_wanted(candidate) else None

    register_module_forward_hook(add)


def _at_line(recorder: Any, op: str, place: tuple[str, int], with_codes: Any) -> OperatorStream:
    """For vectors that no layer of their own makes: rows of a table, a product with a parameter."""

    def hearing(func: Any, args: Any, kwargs: Any, result: Any) -> Any:
        if name_of(func) != op:
            return None
        site = recorder.sites.find()
        if site is None or (site.file, site.line) != place:
            return None
        with torch._C.DisableTorchFunction():
            return with_codes(result)

    return OperatorStream(after(hearing))


def _codes(output: torch.Tensor, time_dim: int) -> torch.Tensor:
    """Codes as large as the vectors themselves, so that they are seen next to them."""
    length, width = output.shape[time_dim], output.shape[-1]
    place = torch.arange(length, device=output.device, dtype=torch.float32)[:, None]
    rate = torch.exp(
        torch.arange(0, width, 2, device=output.device, dtype=torch.float32)
        * (-math.log(10_000.0) / width)
    )
    code = torch.zeros(length, width, device=output.device)
    code[:, 0::2] = torch.sin(place * rate)
    code[:, 1::2] = torch.cos(place * rate)[:, : width // 2]
    size = output.detach().float().std().clamp(min=0.02)
    code = (code * size).to(output.dtype)
    return code[:, None] if time_dim == 0 else code[None]
