"""Which tensor, if any, stands behind what an optimizer holds: the local shard, dense, of a type we
can read.
"""

from __future__ import annotations

from typing import Any

import torch

MEASURABLE_DTYPES = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
FLOAT16_TINY = torch.finfo(torch.float16).tiny

_ORDINARY = (torch.Tensor, torch.nn.Parameter)


class unobserved:
    """Our own operators are invisible to modes and autograd: a user's `with torch.device(...)`, a
    FLOP counter or an
    operator trace must neither redirect nor count them. A class with slots, since a generator costs
    3 us more."""

    __slots__ = ("_functions", "_grad", "_modes")

    def __enter__(self) -> None:
        self._functions = torch._C.DisableTorchFunction()
        self._functions.__enter__()
        self._grad = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        self._modes: Any = None
        if torch._C._len_torch_dispatch_stack() > 0:
            from torch.utils._python_dispatch import _disable_current_modes

            self._modes = _disable_current_modes()
            self._modes.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._modes is not None:
            self._modes.__exit__(None, None, None)
        torch._C._set_grad_enabled(self._grad)
        self._functions.__exit__(None, None, None)


def measurable(tensor: torch.Tensor) -> torch.Tensor | None:
    """The plain tensor whose numbers are measured, or None. A DTensor counts as its local shard; a
    sparse tensor in
    host memory as its values (on a device, coalescing would wait for it)."""
    try:
        if type(tensor) not in _ORDINARY:
            local = getattr(tensor, "_local_tensor", None)
            if isinstance(local, torch.Tensor):
                tensor = local
            if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                return None
        if tensor.dtype not in MEASURABLE_DTYPES or tensor.device.type not in ("cpu", "cuda"):
            return None
        if tensor.layout is torch.sparse_coo and tensor.device.type == "cpu":
            tensor = tensor.coalesce().values()
        if tensor.layout is not torch.strided or tensor.numel() == 0 or tensor.data_ptr() == 0:
            return None  # data_ptr 0: storage given back, as FSDP does between uses
        return tensor
    except Exception:  # lazily initialised, fake or functorch tensors raise at different places: nothing to measure
        return None


def fills_its_memory(tensor: torch.Tensor) -> bool:
    """Whether numel() values lie side by side from data_ptr() on, in whatever order of
    dimensions.
    """
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def smallest_normal(
    dtype: torch.dtype, half_tiny: float | torch.Tensor | None
) -> float | torch.Tensor:
    """Where subnormal begins: in the tensor's own type, or, when the backward pass ran in float16,
    in that.
    """
    if half_tiny is not None and dtype in (torch.float16, torch.float32):
        return half_tiny
    return FLOAT16_TINY if dtype is torch.float16 else float(torch.finfo(dtype).tiny)
