"""Statistics of tensors, read from the device once for the whole step."""

from __future__ import annotations

import math
from typing import Any

import torch

# A whole pass is taken up to here, a strided subset beyond: min and max of logits of a large model
# would need copies.
_WHOLE = 1 << 21
_SUBSET = 1 << 14
_ROWS = 256  # samples kept on a device before they are reduced

_TRANSFORMS = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode)
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def plain_below(tensor: torch.Tensor) -> torch.Tensor:
    """What a tensor inside of torch.func's grad stands for."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def listed(tensor: torch.Tensor) -> Any:
    """Its values. Inside of torch.func's grad, torch 2.6 wraps even a plain tensor on its way into
    a list, and then finds nothing in it.
    """
    if torch._C._functorch.peek_interpreter_stack() is None:
        return tensor.tolist()
    with torch._C._ExcludeDispatchKeyGuard(_TRANSFORMS):
        return plain_below(tensor).tolist()


def is_plain(tensor: torch.Tensor) -> bool:
    """Only ordinary dense tensors are looked into; sharded, nested, sparse and fake ones keep their
    secrets.
    """
    return (
        type(tensor) in _PLAIN
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and not tensor.is_nested
        and tensor.device.type in ("cpu", "cuda")
        and not tensor.is_complex()
    )


def subset(tensor: torch.Tensor, limit: int = _SUBSET) -> torch.Tensor:
    """At most about `limit` elements of a tensor as one dimension, taken at even distances in
    memory, without a copy first.
    """
    while 0 in tensor.stride() and any(
        n > 1 and s == 0 for n, s in zip(tensor.shape, tensor.stride(), strict=True)
    ):
        dim = next(
            d
            for d, (n, s) in enumerate(zip(tensor.shape, tensor.stride(), strict=True))
            if n > 1 and s == 0
        )
        tensor = tensor.select(dim, 0)
    count = tensor.numel()
    if count <= limit:
        return tensor.reshape(-1)
    stride = -(-count // limit)
    # An odd stride does not fall in step with the powers of two of heads and channels.
    stride += 1 - stride % 2
    if tensor.is_contiguous():
        return tensor.view(-1)[::stride]
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    dense = tensor.permute(order)
    return dense.view(-1)[::stride] if dense.is_contiguous() else tensor.reshape(-1)[::stride]


class Statistic:
    """min, max, mean, std and the number of non-finite values of a tensor; filled in when the
    ledger is read.
    """

    __slots__ = ("filled", "max", "mean", "min", "nonfinite", "std")

    def __init__(self) -> None:
        self.min: float | None = None
        self.max: float | None = None
        self.mean: float | None = None
        self.std: float | None = None
        self.nonfinite = 0
        self.filled = False

    def fill(self, values: list[float]) -> None:
        low, high, mean, std, count = values
        self.min = low if math.isfinite(low) else None
        self.max = high if math.isfinite(high) else None
        self.mean = mean if math.isfinite(mean) else None
        self.std = std if math.isfinite(std) else None
        self.nonfinite = int(count) if math.isfinite(count) else 1
        self.filled = True


class _Samples:
    """Tensors of one device whose extremes were taken and of which a sample was kept: their
    statistics are made all at once,
    since on a device each of them would cost a dozen launches."""

    def __init__(self, device: torch.device) -> None:
        self._owners: list[Statistic] = []
        self._extremes: dict[torch.dtype, list[torch.Tensor]] = {}
        self._places: dict[torch.dtype, list[int]] = {}
        self._sizes: list[int] = []
        self._values = torch.empty((_ROWS, _SUBSET), device=device)

    @property
    def is_full(self) -> bool:
        return len(self._owners) == _ROWS

    def take(self, owner: Statistic, tensor: torch.Tensor) -> None:
        if tensor.dtype == torch.bool:
            tensor = subset(tensor, _WHOLE).to(torch.uint8)
        sample = subset(tensor)
        self._values[len(self._owners), : len(sample)].copy_(sample)
        self._extremes.setdefault(tensor.dtype, []).extend(torch.aminmax(tensor))
        self._places.setdefault(tensor.dtype, []).append(len(self._owners))
        self._sizes.append(len(sample))
        self._owners.append(owner)

    def statistics(self) -> tuple[list[Statistic], torch.Tensor]:
        """A row for each: min, max, mean, std, non-finite. Extremes are those of the whole tensor
        as long as it is finite, else
        of the finite values in the sample; a non-finite value outside of the sample counts as
        one."""
        values = self._values[: len(self._owners)]
        sizes = torch.tensor(self._sizes, device=values.device)[:, None]
        taken = torch.arange(_SUBSET, device=values.device) < sizes
        good = taken & torch.isfinite(values)
        count = good.sum(dim=1).to(torch.float64)
        clean = torch.where(good, values, 0.0).to(torch.float64)
        mean = clean.sum(dim=1) / count
        std = (torch.where(good, clean - mean[:, None], 0.0).square().sum(dim=1) / count).sqrt()
        low = torch.where(good, values, math.inf).amin(dim=1)
        high = torch.where(good, values, -math.inf).amax(dim=1)
        extremes = values.new_empty((len(values), 2))
        for dtype, pairs in self._extremes.items():
            extremes[self._places[dtype]] = torch.stack(pairs).reshape(-1, 2).to(torch.float32)
        whole = torch.isfinite(extremes).all(dim=1)
        bad = torch.maximum(sizes[:, 0] - count, (~whole).to(torch.float64))
        low, high = (
            torch.where(whole, extremes[:, 0], low),
            torch.where(whole, extremes[:, 1], high),
        )
        return self._owners, torch.stack((low.double(), high.double(), mean, std, bad), dim=1)


class Ledger:
    """Statistics asked for during a step. On a GPU they stay there until `read`, so that one copy
    brings them all.
    """

    def __init__(self) -> None:
        self._waiting: dict[torch.device, list[tuple[Any, torch.Tensor]]] = {}
        self._sampled: dict[torch.device, _Samples] = {}

    def statistic(self, tensor: torch.Tensor) -> Statistic | None:
        if tensor.numel() == 0 or not is_plain(tensor):
            return None
        statistic = Statistic()
        tensor = tensor.detach()
        if tensor.is_cuda:
            samples = self._sampled.get(tensor.device)
            if samples is None:
                samples = self._sampled[tensor.device] = _Samples(tensor.device)
            samples.take(statistic, tensor)
            if samples.is_full:
                self._settle(tensor.device)
        else:
            statistic.fill(_on_host(tensor))
        return statistic

    def later(self, owner: Any, vector: torch.Tensor) -> None:
        """`owner.fill(list)` is called with the vector's values when the ledger is read."""
        self._waiting.setdefault(vector.device, []).append((owner, vector.to(torch.float32)))

    def read(self) -> None:
        for device in list(self._sampled):
            self._settle(device)
        waiting, self._waiting = self._waiting, {}
        for entries in waiting.values():
            values = listed(torch.cat([vector for _, vector in entries]))
            start = 0
            for owner, vector in entries:
                owner.fill(values[start : start + vector.numel()])
                start += vector.numel()

    def _settle(self, device: torch.device) -> None:
        owners, table = self._sampled.pop(device).statistics()
        self.later(_Rows(owners), table.reshape(-1))


class _Rows:
    def __init__(self, owners: list[Statistic]) -> None:
        self._owners = owners

    def fill(self, values: list[float]) -> None:
        width = len(values) // len(self._owners)
        for i, owner in enumerate(self._owners):
            owner.fill(values[i * width : (i + 1) * width])


def _on_host(tensor: torch.Tensor) -> list[float]:
    if tensor.dtype == torch.bool:
        share = float(subset(tensor, _WHOLE).to(torch.float32).mean())
        return [
            float(share >= 1.0),
            float(share > 0.0),
            share,
            math.sqrt(max(share * (1 - share), 0.0)),
            0.0,
        ]
    small = subset(tensor)
    if not tensor.is_floating_point():
        low, high = torch.aminmax(tensor)
        real = small.to(torch.float32)
        return [float(low), float(high), float(real.mean()), float(real.std(correction=0)), 0.0]
    if tensor.numel() > _WHOLE:
        peak = float(torch.linalg.vector_norm(tensor, ord=math.inf))
        low, high = torch.aminmax(subset(tensor, _WHOLE))
        bad = not math.isfinite(peak)
    else:
        low, high = torch.aminmax(tensor)
        bad = not (math.isfinite(float(low)) and math.isfinite(float(high)))
    if not bad:
        std, mean = torch.std_mean(small.to(torch.float32), correction=0)
        return [float(low), float(high), float(mean), float(std), 0.0]
    finite = torch.isfinite(tensor)
    count = float(tensor.numel() - int(finite.sum()))
    good = tensor[finite].to(torch.float32)
    if good.numel() == 0:
        return [math.nan, math.nan, math.nan, math.nan, count]
    low, high = torch.aminmax(good)
    return [float(low), float(high), float(good.mean()), float(good.std(correction=0)), count]
