"""The journal: operators of the step in progress, kept so that the first non-finite result can be
named.

Under `diagnose` only. It costs one function-mode call per operator and no arithmetic: values are
looked at after the loss turned out to be non-finite, while the step's tensors are still alive.
Before the first step it also notes where data was indexed, permuted or sorted, masks were cut out
and first weights written.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from sawbones.observe.signals.index_writes import HEARD, IndexWriteLog
from sawbones.observe.sites import SiteFinder
from sawbones.schema import MadeTensors, Site
from sawbones.store import RunWriter

_MAX_OPS = 4000
_MAX_DATA_OPS = 3000
_ORDERING = {
    "randperm",
    "__getitem__",
    "sort",
    "argsort",
    "flip",
    "roll",
    "index_select",
    "gather",
    "take",
    "__setitem__",
    "randint",
    "repeat",
    "repeat_interleave",
    "tile",
    "multinomial",
    "masked_select",
}
# Masks, positions and first weights are made long before they are used: the line that made them is
# where they are put right.
_BUILDING = {
    "tril",
    "triu",
    "tril_",
    "triu_",
    "eye",
    "fill_diagonal_",
    "fill_",
    "zero_",
    "normal_",
    "uniform_",
    "trunc_normal_",
    "arange",
    "requires_grad_",
    "constant_",
    "kaiming_uniform_",
    "kaiming_normal_",
}
# Where data turns into tensors.
_MAKING = {"tensor", "as_tensor", "float", "to", "stack", "randn", "rand"}
_FROM_ARRAYS = {"tensor", "as_tensor", "asarray"}
# Of interest only as parameters that no layer holds.
_FILLING = {"zeros", "ones", "full"}
# Operators whose -inf is a failure even when it stands alone.
_DIVIDING = frozenset({"div", "div_"})
_MAKES_INFINITY = {
    "log",
    "log2",
    "log10",
    "log1p",
    "div",
    "rdiv",
    "reciprocal",
    "pow",
    "logsumexp",
    "exp",
}


# The host waits for the device to bring a value over.
_READS = frozenset(
    {
        "item",
        "tolist",
        "cpu",
        "numpy",
        "__bool__",
        "__float__",
        "__int__",
        "to",
        "nonzero",
        "__repr__",
    }
)


class Journal:
    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._ops: list[tuple[str, Site | None, tuple[torch.Tensor, ...], torch.Tensor]] = []
        self._made: dict[tuple[str, Site], tuple[int, tuple[int, ...], str]] = {}
        self._prologue = True
        self.index_writes = IndexWriteLog()
        self.is_on = False  # whoever has the stream of operators asks before `heard`
        self._found = False
        self._busy = False
        self.on_read: Callable[..., None] | None = None  # told when values leave their device
        self.on_array: Callable[..., None] | None = None  # told what tensors are made from
        self.on_write: list[
            Callable[..., None]
        ] = []  # told of operators that change their first argument

    def resume(self) -> None:
        self.is_on = True

    def pause(self) -> None:
        self.is_on = False

    def model_input(self, rows: int) -> torch.Tensor | None:
        """Of a model that is no nn.Module: the first data of so many rows that met something with
        gradients in this step.
        """
        for _, _, inputs, result in self._ops:
            if result.requires_grad:
                for tensor in inputs:
                    if not tensor.requires_grad and tensor.dim() >= 2 and tensor.shape[0] == rows:
                        return tensor
        return None

    def clear(self) -> None:
        self._ops.clear()
        self.index_writes.clear()

    def heard(self, name: str, func: Any, args: Any, result: Any) -> None:
        """An operator has run; `name` is the one that a trace gives it. Not asked for while torch
        is only tracing, nor for the attributes of a tensor ("__get__").
        """
        if self._busy:
            return
        if (
            name == "__set__"
            and getattr(getattr(func, "__self__", None), "__name__", "") == "requires_grad"
        ):
            name, result = "requires_grad_", args[0]  # p.requires_grad = False
        if self.on_read is not None and name in _READS:
            self.on_read(name, args, result, sys._getframe(3))
        if self.on_array is not None and name in _FROM_ARRAYS and args:
            self.on_array(args[0], sys._getframe(3))
        if self.on_write and name.endswith("_"):
            start = sys._getframe(3)
            for act in tuple(self.on_write):
                act(name, func, args, lambda: self._sites.find(start))
        if name in HEARD and self.index_writes.concerns(name, args):
            start = sys._getframe(3)
            self.index_writes.heard(name, args, result, lambda: self._sites.find(start))
        if (
            self._prologue
            and (name in _ORDERING or name in _BUILDING or name in _MAKING or name in _FILLING)
            and len(self._made) < _MAX_DATA_OPS
        ):
            self._note_data(name, args, result)
        if name == "multi_head_attention_forward" and isinstance(result, tuple):
            result = result[
                0
            ]  # (values, weights): else a NaN seems to come from the operator after it
        if (
            torch.is_grad_enabled()
            and isinstance(result, torch.Tensor)
            and result.is_floating_point()
            and len(self._ops) < _MAX_OPS
        ):
            counts = name in _DIVIDING  # a divisor of whole numbers is a count
            inputs = tuple(
                a for a in args if isinstance(a, torch.Tensor) and (counts or a.is_floating_point())
            )
            self._ops.append((name, self._sites.find(sys._getframe(3)), inputs, result))

    def _note_data(self, name: str, args: Any, result: Any) -> None:
        if name in ("__getitem__", "__setitem__") and not (
            len(args) > 1 and isinstance(args[1], (torch.Tensor, list))
        ):
            return  # a slice or a number keeps the order
        if name == "requires_grad_" and (len(args) < 2 or args[1]):
            return  # only freezing is of interest
        if name in _FILLING and not result.requires_grad:
            return
        result = result[0] if isinstance(result, tuple) and result else result
        site = self._sites.find(sys._getframe(4))
        if site is None or not isinstance(result, torch.Tensor):
            return
        first = (0, tuple(result.shape), str(result.dtype).removeprefix("torch."))
        count, shape, dtype = self._made.get((name, site), first)
        self._made[name, site] = (count + 1, shape, dtype)

    def before_backward(self, loss: Any, step: int, writer: RunWriter) -> None:
        """The loss is known now: when it is not finite, the operators of this step say where that
        began.
        """
        self._prologue = False
        if not isinstance(loss, torch.Tensor) or self._found or loss.device.type != "cpu":
            return
        self._busy = True
        try:
            with torch.no_grad():
                if not math.isfinite(float(loss.detach().sum())):
                    self._found = True
                    record = first_nonfinite(self._ops)
                    if record is not None:
                        writer.record("nonfinite", 0, {"step": step, **record})
        finally:
            self._busy = False

    def close(self, writer: RunWriter) -> None:
        self.pause()
        rows = [MadeTensors(op, site, *entry) for (op, site), entry in self._made.items()]
        writer.record("made_tensors", 0, rows)
        self._ops.clear()


def first_nonfinite(
    ops: Iterable[tuple[str, Site | None, tuple[torch.Tensor, ...], torch.Tensor]],
) -> dict[str, Any] | None:
    for name, site, inputs, result in ops:
        plain = result.detach()
        if (
            plain.numel()
            and not math.isfinite(float(plain.sum()))
            and not bool(torch.isfinite(plain).all())
        ):
            if name not in _MAKES_INFINITY and (_masks(plain) or _is_constant(name, plain)):
                continue  # -inf written on purpose into scores, and carried along
            return {
                "op": name,
                "site": site,
                "shape": list(plain.shape),
                "nonfinite": int((~torch.isfinite(plain)).sum()),
                "inputs": [_range(t) for t in inputs],
            }
    return None


def _masks(plain: torch.Tensor) -> bool:
    """Only -inf beside finite values: a mask being added to scores, not a failure."""
    return (
        not bool(torch.isnan(plain).any())
        and not bool((plain == math.inf).any())
        and bool(torch.isfinite(plain).any())
    )


def _is_constant(name: str, plain: torch.Tensor) -> bool:
    """A tensor of nothing but -inf, made to be put into scores."""
    return name in ("full", "full_like", "new_full", "tensor", "fill_", "mul", "neg") and bool(
        (plain == -math.inf).all()
    )


def _range(tensor: torch.Tensor) -> dict[str, Any]:
    plain = tensor.detach()
    finite = plain[torch.isfinite(plain)]
    return {
        "shape": list(plain.shape),
        "dtype": str(plain.dtype).removeprefix("torch."),
        "min": float(finite.min()) if finite.numel() else math.nan,
        "max": float(finite.max()) if finite.numel() else math.nan,
        "zeros": int((plain == 0).sum()),
        "whole": bool((finite == finite.round()).all()) if finite.is_floating_point() else True,
        "nonfinite": int(plain.numel() - finite.numel()),
    }
