"""Names of torch functions and of their arguments, the same for every way of writing a call."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from sawbones.trace.operators import normal

# Properties that give a tensor; every other property (shape, dtype, device, ...) is not an
# operation.
_TENSOR_PROPERTIES = {"data", "T", "mT", "H", "mH", "real", "imag"}

# Positional arguments of C functions, whose signatures Python cannot read. The first tensor is left
# out.
_POSITIONAL: dict[str, tuple[str, ...]] = {
    "softmax": ("dim", "dtype"),
    "log_softmax": ("dim", "dtype"),
    "logsumexp": ("dim", "keepdim"),
    "sum": ("dim", "keepdim"),
    "mean": ("dim", "keepdim"),
    "std": ("dim",),
    "var": ("dim",),
    "amax": ("dim",),
    "amin": ("dim",),
    "max": ("dim",),
    "argmax": ("dim",),
    "masked_fill": ("mask", "value"),
    "masked_fill_": ("mask", "value"),
    "transpose": ("dim0", "dim1"),
    "gather": ("dim", "index"),
    "index_select": ("dim", "index"),
    "clamp": ("min", "max"),
    "clamp_": ("min", "max"),
    "pow": ("exponent",),
    "chunk": ("chunks", "dim"),
    "split": ("split_size", "dim"),
    "tril": ("diagonal",),
    "triu": ("diagonal",),
    "unsqueeze": ("dim",),
    "squeeze": ("dim",),
    "flatten": ("start_dim", "end_dim"),
    "dropout": ("p", "training"),
    "norm": ("p", "dim"),
    "cumsum": ("dim",),
    "select": ("dim", "index"),
    "narrow": ("dim", "start", "length"),
    "unbind": ("dim",),
    "repeat_interleave": ("repeats", "dim"),
    "roll": ("shifts", "dims"),
    "flip": ("dims",),
    "bmm": ("mat2",),
    "matmul": ("other",),
    "cat": ("dim",),
    "stack": ("dim",),
    "cumprod": ("dim",),
    "scatter": ("dim", "index", "src"),
    "scatter_": ("dim", "index", "src"),
    "normalize": ("p", "dim", "eps"),
    "argsort": ("dim",),
    "scaled_dot_product_attention": ("key", "value", "attn_mask", "dropout_p", "is_causal"),
    "linear": ("weight", "bias"),
    "topk": ("k", "dim"),
    "index_copy": ("dim", "index"),
    "take_along_dim": ("indices", "dim"),
    "one_hot": ("num_classes",),
}
_VARIADIC = {"view", "reshape", "expand", "permute", "repeat", "tile", "movedim"}


def name_of(func: Callable[..., Any]) -> str | None:
    """The normal name of a torch function, or None for something that is not an operation on
    values.
    """
    name = getattr(func, "__name__", None)
    if name is None:
        return type(func).__name__
    if name in ("__get__", "__set__", "__delete__"):
        name_of_property = getattr(getattr(func, "__self__", None), "__name__", "")
        if name_of_property not in _TENSOR_PROPERTIES or name == "__delete__":
            return None
        return name_of_property if name == "__get__" else f"set_{name_of_property}"
    return normal(name)


# weakly: wrappers of ours hold the recording that they are made for
_signatures: weakref.WeakKeyDictionary[Any, tuple[str, ...] | None] = weakref.WeakKeyDictionary()


def _signature(func: Callable[..., Any]) -> tuple[str, ...] | None:
    if not inspect.isfunction(func):
        return None
    if func not in _signatures:
        try:
            _signatures[func] = tuple(inspect.signature(func).parameters)
        except (TypeError, ValueError):
            _signatures[func] = None
    return _signatures[func]


def bind(
    name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Every argument by name, tensors included. The first positional argument is called "input"
    where no name is known.
    """
    bound: dict[str, Any] = {}
    names = _signature(func)
    if name == "einsum":  # its signature says no more than *args
        bound["equation"] = args[0] if args else ""
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        bound.update(
            {("input" if i == 0 else f"operand{i}"): operand for i, operand in enumerate(operands)}
        )
    elif names is not None:
        bound.update(zip(names, args, strict=False))
    elif name in _VARIADIC and args:
        rest = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        bound["input"], bound["sizes"] = args[0], tuple(rest)
    elif (
        name == "where"
        and len(args) == 3
        and isinstance(args[0], torch.Tensor)
        and args[0].dtype != torch.bool
    ):
        # Tensor.where(condition, other) puts the tensor first, torch.where(condition, input, other)
        # the condition.
        bound["input"], bound["condition"], bound["other"] = args
    elif name == "where":
        bound.update(zip(("condition", "input", "other"), args, strict=False))
    elif args:
        bound["input"] = args[0]
        known = _POSITIONAL.get(name, ())
        for position, value in enumerate(args[1:]):
            bound[
                known[position]
                if position < len(known)
                else ("other" if position == 0 else f"arg{position + 1}")
            ] = value
    bound.update(kwargs)
    return bound


def index_text(index: Any, depth: int = 0) -> str:
    """An index as it would be written: "[:, -1, None]"; tensors by dtype and shape."""
    if isinstance(index, tuple) and depth == 0:
        return "[" + ", ".join(index_text(i, 1) for i in index) + "]"
    text: str
    if isinstance(index, slice):
        parts = [
            "" if p is None else str(int(p)) if not isinstance(p, torch.Tensor) else "t"
            for p in (index.start, index.stop)
        ]
        text = ":".join(parts) + ("" if index.step is None else f":{index.step}")
    elif index is Ellipsis:
        text = "..."
    elif isinstance(index, torch.Tensor):
        text = f"{str(index.dtype).removeprefix('torch.')}{tuple(index.shape)}"
    elif isinstance(index, (list, tuple)):
        text = f"list({len(index)})"
    else:
        text = str(index)[:20]
    return text if depth else f"[{text}]"


def scalars(name: str, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a record may keep: numbers, names, flags and short lists of them."""
    kept: dict[str, Any] = {}
    for key, value in bound.items():
        if key == "self":
            continue
        if name in ("__getitem__", "__setitem__") and key == "other":
            kept["index"] = index_text(value)
        elif isinstance(value, (bool, int, float, str)):
            kept[key] = value
        elif isinstance(value, torch.dtype):
            kept[key] = str(value).removeprefix("torch.")
        elif (
            isinstance(value, (tuple, list))
            and len(value) <= 8
            and all(isinstance(v, (bool, int, float)) for v in value)
        ):
            kept[key] = tuple(value)
        elif isinstance(value, torch.Tensor) and key not in ("input", "other"):
            kept[key] = "tensor"
    return kept
