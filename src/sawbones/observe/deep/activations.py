"""Activation statistics: spread, zeros, saturation and units that never fire, per leaf module and
per activation function.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from sawbones.observe.deep.measure import Ledger, is_plain, subset
from sawbones.observe.deep.modules import ModuleCall, Paths
from sawbones.observe.deep.trace import RawOp
from sawbones.properties.inputs import tensors_in
from sawbones.schema import Activation, Site

_MAX = 2000
_SAMPLE = 4096
_QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
# Functions with bounds, and the value beyond which their slope is under about 1 % of its largest.
_BOUNDED = {
    "tanh": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0),
    "hardtanh": (-1.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "softsign": (-1.0, 1.0),
}
_NEAR = 0.005
_FUNCTIONS = frozenset(
    {
        *_BOUNDED,
        "relu",
        "relu_",
        "gelu",
        "silu",
        "leaky_relu",
        "elu",
        "selu",
        "relu6",
        "softplus",
        "mish",
        "tanh_",
    }
)


class _Pending:
    __slots__ = ("cls", "module", "number", "shape", "site", "values")

    def __init__(
        self,
        module: nn.Module | None,
        cls: str,
        number: int,
        shape: tuple[int, ...],
        site: Site | None,
    ) -> None:
        self.module, self.cls, self.number, self.shape, self.site = module, cls, number, shape, site
        self.values: list[float] = []

    def fill(self, values: list[float]) -> None:
        self.values = values


class Activations:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pending: list[_Pending] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._quantile_places: dict[tuple[int, torch.device], torch.Tensor] = {}

    def on_module(self, call: ModuleCall, output: Any) -> None:
        tensor = next((t for t in tensors_in(output) if t.is_floating_point()), None)
        if tensor is not None:
            kind = _function_of(call.cls)
            self._measure(
                tensor,
                _Pending(call.module, call.cls, call.number, tuple(tensor.shape), call.site),
                kind,
                _channels(call),
            )

    def on_op(self, op: RawOp, result: Any) -> None:
        if op.name not in _FUNCTIONS or not isinstance(result, torch.Tensor):
            return
        module = op.module
        if (
            module is not None
            and not module._modules
            and _function_of(type(module).__name__) == op.name.rstrip("_")
        ):
            return  # the module's own hook measures the same tensor
        key = (id(module), op.name)
        number = self._numbers[key] = self._numbers.get(key, -1) + 1
        # Over (batch, channels, height, width) a unit is a channel; elsewhere the last dimension.
        unit_dim = 1 if result.dim() in (4, 5) else -1
        self._measure(
            result,
            _Pending(module, op.name, number, tuple(result.shape), op.site),
            op.name.rstrip("_"),
            unit_dim,
        )

    def _measure(self, tensor: torch.Tensor, pending: _Pending, kind: str, unit_dim: int) -> None:
        if len(self._pending) >= _MAX or tensor.numel() == 0 or not is_plain(tensor):
            return
        tensor = tensor.detach()
        sample = subset(tensor, _SAMPLE).to(torch.float32)
        finite = torch.isfinite(sample)
        clean = torch.where(finite, sample, torch.zeros_like(sample))
        ordered = clean.sort().values
        last = ordered.numel() - 1
        quantiles = ordered[self._places_of_quantiles(last, ordered.device)]
        std, mean = torch.std_mean(clean, correction=0)
        zeros = (sample == 0).to(torch.float32).mean()
        bounds = _BOUNDED.get(kind)
        if bounds is None:
            saturated = torch.zeros_like(mean)
        else:
            room = (bounds[1] - bounds[0]) * _NEAR
            saturated = (
                ((clean <= bounds[0] + room) | (clean >= bounds[1] - room)).to(torch.float32).mean()
            )
        dead = torch.zeros_like(mean)
        if kind in ("relu", "relu6") or (
            kind not in _BOUNDED and not sample.is_cuda and float(zeros) > 0.3
        ):
            dead = _dead_units(tensor, unit_dim)
        vector = torch.stack(
            (
                mean,
                std,
                clean.abs().amax(),
                zeros,
                saturated,
                dead,
                (~finite).to(torch.float32).sum(),
            )
        )
        self._ledger.later(pending, torch.cat((vector, quantiles)))
        self._pending.append(pending)

    def _places_of_quantiles(self, last: int, device: torch.device) -> torch.Tensor:
        found = self._quantile_places.get((last, device))
        if found is None:  # made once: on a device each would be a copy to wait for
            found = torch.tensor([round(q * last) for q in _QUANTILES], device=device)
            self._quantile_places[last, device] = found
        return found

    def records(self, paths: Paths) -> tuple[Activation, ...]:
        made = []
        for p in self._pending:
            if len(p.values) == 12:
                mean, std, peak, zeros, saturated, dead, bad = p.values[:7]
                count, quantiles = int(bad) if math.isfinite(bad) else 1, tuple(p.values[7:])
                shares = (zeros, saturated, dead)
                made.append(
                    Activation(
                        paths.of(p.module),
                        p.cls,
                        p.number,
                        p.shape,
                        mean,
                        std,
                        peak,
                        *shares,
                        count,
                        p.site,
                        quantiles,
                    )
                )
        return tuple(made)


def _function_of(cls: str) -> str:
    lowered = cls.lower()
    return {"leakyrelu": "leaky_relu"}.get(lowered, lowered)


def _channels(call: ModuleCall) -> int:
    module = call.module
    if isinstance(
        module, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.modules.batchnorm._BatchNorm, nn.GroupNorm)
    ):
        return 1
    dims = len(call.outputs[0][1]) if call.outputs else 0
    return 1 if dims in (4, 5) else -1


def _dead_units(tensor: torch.Tensor, unit_dim: int) -> torch.Tensor:
    """Share of units that are zero for every example and position."""
    if tensor.dim() < 2 or tensor.shape[0] * tensor.shape[-1] == 0:
        return torch.zeros((), device=tensor.device)
    others = [d for d in range(tensor.dim()) if d != unit_dim % tensor.dim()]
    return (tensor.abs().amax(dim=others) == 0).to(torch.float32).mean()
