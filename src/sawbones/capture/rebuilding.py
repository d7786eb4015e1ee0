"""Operators read back from the graph that autograd has kept of them: what a node saved for its
backward pass, and what its inputs were where those can be had, is often all that the operator was
given. Nothing of the user's is run for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sawbones.capture.operators import Call, has_nan, is_finite, operator_named

MAX_DEPTH = 8
_UNARY = {
    name: name.lower()
    for name in (
        "Log",
        "Log2",
        "Log10",
        "Log1P",
        "Exp",
        "Exp2",
        "Expm1",
        "Sqrt",
        "Rsqrt",
        "Reciprocal",
        "Acos",
        "Asin",
        "Acosh",
        "Atanh",
        "Sinh",
        "Cosh",
        "Tan",
        "Neg",
        "Abs",
        "Sigmoid",
        "Tanh",
        "Relu",
        "Lgamma",
        "Digamma",
        "Erfinv",
    )
}
# name of the node: operator, tensors in the order of its edges, other arguments
_KNOWN: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    **{node: (f"torch.{name}", ("self",), ()) for node, name in _UNARY.items()},
    "Add": ("torch.add", ("self", "other"), ("alpha",)),
    "Sub": ("torch.sub", ("self", "other"), ("alpha",)),
    "Mul": ("torch.mul", ("self", "other"), ()),
    "Div": ("torch.div", ("self", "other"), ()),
    "Pow": ("torch.pow", ("self", "exponent"), ()),
    "Mm": ("torch.mm", ("self", "mat2"), ()),
    "Bmm": ("torch.bmm", ("self", "mat2"), ()),
    "Addmm": ("torch.addmm", ("self", "mat1", "mat2"), ("alpha", "beta")),
    "Sum": ("torch.sum", ("self",), ("dim", "keepdim")),
    "Mean": ("torch.mean", ("self",), ("dim", "keepdim")),
    "Logsumexp": ("torch.logsumexp", ("self",), ("dim", "keepdim")),
    "Softmax": ("torch.softmax", ("self",), ("dim",)),
    "LogSoftmax": ("torch.log_softmax", ("self",), ("dim",)),
    "Std": ("torch.std", ("self",), ("dim", "correction", "keepdim")),
    "Var": ("torch.var", ("self",), ("dim", "correction", "keepdim")),
    "LinalgVectorNorm": ("torch.linalg.vector_norm", ("self",), ("ord", "dim", "keepdim")),
    "Gather": ("torch.gather", ("self",), ("dim", "index")),
    "MseLoss": ("torch.nn.functional.mse_loss", ("self", "target"), ("reduction",)),
    "SmoothL1Loss": (
        "torch.nn.functional.smooth_l1_loss",
        ("self", "target"),
        ("reduction", "beta"),
    ),
    "HuberLoss": ("torch.nn.functional.huber_loss", ("self", "target"), ("reduction", "delta")),
    "BinaryCrossEntropy": (
        "torch.nn.functional.binary_cross_entropy",
        ("self", "target"),
        ("weight", "reduction"),
    ),
    "NllLoss": (
        "torch.nn.functional.nll_loss",
        ("self",),
        ("target", "weight", "ignore_index", "reduction"),
    ),
}
_RESHAPING = {"View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Alias", "Clone"}
_REDUCTIONS = ("none", "mean", "sum")


def first_bad(nodes: Sequence[Any]) -> Call | None:
    """Of the operators that can be read back: the first that made good values bad, else the first
    that passed on a NaN.
    """
    passed: Call | None = None
    for node in nodes:
        call = read_back(node)
        if call is None:
            continue
        outputs = Call("", (), {}, _run(call)).outputs()
        if is_finite(outputs):
            continue
        inputs = call.inputs()
        if is_finite(inputs) or (has_nan(outputs) and not has_nan(inputs)):
            return call
        if passed is None and has_nan(outputs):
            passed = call
    return passed


def read_back(node: Any, depth: int = 0) -> Call | None:
    """None where something that the operator was given is not known."""
    known = _KNOWN.get(str(node.name()).rsplit("::", 1)[-1].split("Backward")[0])
    if known is None:
        return None
    name, operands, others = known
    args = []
    for number, operand in enumerate(operands):
        value = _saved(node, operand)
        if value is None and number < len(node.next_functions):
            value = _edge(node.next_functions[number], depth)
        if value is None:
            return None
        args.append(value.detach() if isinstance(value, torch.Tensor) else value)
    kwargs = {key: value for key in others if (value := _saved(node, key)) is not None}
    if "reduction" in kwargs:
        kwargs["reduction"] = _REDUCTIONS[int(kwargs["reduction"])]
    call = Call(name, tuple(args), kwargs, func=operator_named(name))
    try:
        fits = [tuple(t.shape) for t in Call("", (), {}, _run(call)).outputs()][:1] == [
            _shape(node)
        ]
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    return call if fits else None


def _run(call: Call) -> Any:
    assert call.func is not None
    with torch.no_grad():
        return call.func(*call.args, **call.kwargs)


def _saved(node: Any, name: str) -> Any:
    try:
        value = getattr(node, f"_saved_{name}", None)
    except RuntimeError:  # written over since
        return None
    if isinstance(value, tuple) and all(type(v) is int for v in value):
        return [_signed(v) for v in value]
    return _signed(value) if type(value) is int else value


def _signed(value: int) -> int:
    """Autograd shows dimension -1 as the largest number of 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(node._input_metadata[0].shape)


def _edge(edge: tuple[Any, int], depth: int) -> torch.Tensor | None:
    """The value that came along an edge: a parameter, what its maker saved of it, or its maker once
    more.
    """
    node, number = edge
    if node is None or number or depth > MAX_DEPTH:
        return None
    if hasattr(node, "variable"):
        leaf: torch.Tensor = node.variable
        return leaf
    result = _saved(node, "result")
    if isinstance(result, torch.Tensor):
        return result
    name = str(node.name()).rsplit("::", 1)[-1].split("Backward")[0]
    if name in _RESHAPING or name in ("Expand", "T", "Transpose", "ToCopy"):
        return _moved(node, name, depth)
    call = read_back(node, depth + 1)
    made = _run(call) if call is not None else None
    return made if isinstance(made, torch.Tensor) else None


def _moved(node: Any, name: str, depth: int) -> torch.Tensor | None:
    given = _edge(node.next_functions[0], depth + 1)
    if given is None:
        return None
    if name == "T":
        return given.t()
    if name == "Transpose":
        return given.transpose(_saved(node, "dim0"), _saved(node, "dim1"))
    if name == "Expand":
        return given.expand(_shape(node))
    if name == "ToCopy":
        return given.to(node._input_metadata[0].dtype)
    return given.reshape(_shape(node))
