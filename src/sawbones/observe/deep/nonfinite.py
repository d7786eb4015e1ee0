"""The first operator that makes a non-finite value, and why."""

from __future__ import annotations

import math
from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.modules import Paths
from sawbones.observe.deep.trace import RawOp, Ref

_HALF_MAX = 65504.0
_NORMS = frozenset(
    {
        "layer_norm",
        "batch_norm",
        "group_norm",
        "instance_norm",
        "rms_norm",
        "normalize",
        "norm",
        "std",
        "var",
    }
)
_ROOTS = frozenset(
    {
        "sqrt",
        "norm",
        "pow",
        "std",
        "rsqrt",
        "vector_norm",
        "cdist",
        "dist",
        "log",
        "pairwise_distance",
    }
)
_EDGES = frozenset({"acos", "asin", "arccos", "arcsin"})  # no slope at -1 and 1
_MASKING = frozenset(
    {
        "masked_fill",
        "masked_fill_",
        "full",
        "full_like",
        "where",
        "triu",
        "tril",
        "zeros",
        "new_full",
        "fill_",
        "log",
        "tensor",
    }
)


def first(graph: OpGraph, paths: Paths) -> dict[str, Any] | None:
    for op in graph.ops:
        bad = [r for r in op.outputs if r.statistic is not None and r.statistic.nonfinite]
        if not bad or not _is_birth(op, bad, graph):
            continue
        return _describe(op, bad[0], paths) | {"phase": "forward"}
    return None


def _is_birth(op: RawOp, bad: list[Ref], graph: OpGraph) -> bool:
    if op.silent:
        return False
    # A mask made of -inf is no accident; a NaN in it, or -inf that goes on past a softmax, is.
    return not _is_mask(op, bad, graph)


def _is_mask(op: RawOp, bad: list[Ref], graph: OpGraph) -> bool:
    for ref in bad:
        tensor = ref.tensor()
        only_negative = tensor is not None and bool(
            ((tensor == -math.inf) | torch.isfinite(tensor)).all()
        )
        if not only_negative:
            return False
        if op.name == "log" and ref.requires_grad:
            return False
        users = graph.users(ref)
        made_for_masking = (
            op.name in _MASKING or not ref.requires_grad or any(_carries_mask(r) for r in op.inputs)
        )
        absorbed = all(u.name != "cross_entropy" for u in users)
        if not (made_for_masking and absorbed):
            return False
    return True


def _carries_mask(ref: Ref) -> bool:
    return ref.statistic is not None and ref.statistic.nonfinite > 0


def _describe(op: RawOp, bad: Ref, paths: Paths) -> dict[str, Any]:
    reason = classify(op, bad)
    return {
        "op": op.index,
        "name": op.name,
        "site": op.site,
        "module": paths.of(op.module),
        "args": op.args,
        "reason": reason,
        "inputs": [range_of(r) for r in op.inputs],
        "output": range_of(bad),
    }


def range_of(ref: Ref) -> dict[str, Any]:
    s = ref.statistic
    return {
        "shape": ref.shape,
        "dtype": ref.dtype,
        "min": s.min if s else None,
        "max": s.max if s else None,
        "mean": s.mean if s else None,
        "std": s.std if s else None,
        "nonfinite": s.nonfinite if s else 0,
        "is_parameter": ref.is_parameter,
    }


def classify(op: RawOp, bad: Ref) -> str:
    """A word for the cause: what the operator was given that it cannot answer with a finite
    number.
    """
    inputs = [r for r in op.inputs if r.statistic is not None]
    broken = [r for r in inputs if r.statistic is not None and r.statistic.nonfinite]
    masked = any(_only_masked(r) for r in broken)
    if broken and not (
        masked
        and op.name
        in (
            "softmax",
            "log_softmax",
            "scaled_dot_product_attention",
            "multi_head_attention_forward",
        )
    ):
        if any(r.is_parameter for r in broken):
            return "weights already non-finite"
        return "bad input"
    if op.name in (
        "softmax",
        "log_softmax",
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
    ):
        return "fully masked softmax row"
    low = min(
        (r.statistic.min for r in inputs if r.statistic and r.statistic.min is not None),
        default=math.nan,
    )
    high = max(
        (r.statistic.max for r in inputs if r.statistic and r.statistic.max is not None),
        default=math.nan,
    )
    if op.name in ("log", "log2", "log10", "log1p"):
        return (
            "log of zero"
            if low >= (-1.0 if op.name == "log1p" else 0.0)
            else "log of a negative number"
        )
    if op.name in ("exp", "expm1", "exp2", "sinh", "cosh", "softplus"):
        return "exp overflow"
    if op.name in ("div", "rdiv", "div_", "reciprocal"):
        return "division by zero" if _has_zero(op) else "overflow"
    if op.name in ("sqrt", "rsqrt", "pow"):
        return "root of a negative number" if low < 0 else "division by zero"
    if op.name in _NORMS:
        return "zero variance or norm"
    if bad.dtype == "float16" and high * 1.0 <= _HALF_MAX:
        return "overflow in float16"
    if op.name.endswith(("loss", "cross_entropy", "kl_div")):
        return "log of zero" if low >= 0 else "loss of extreme scores"
    return "overflow"


def _only_masked(ref: Ref) -> bool:
    tensor = ref.tensor()
    return tensor is not None and bool(((tensor == -math.inf) | torch.isfinite(tensor)).all())


def _has_zero(op: RawOp) -> bool:
    divisors = op.inputs[:1] if op.name in ("rdiv", "reciprocal") else op.inputs[1:]
    if not divisors:
        return op.args.get("other") == 0
    return any((t := r.tensor()) is not None and bool((t == 0).any()) for r in divisors)


def in_backward(graph: OpGraph, root: torch.Tensor, paths: Paths) -> dict[str, Any] | None:
    """A finite forward whose gradient is not: roots and norms at exactly zero, inverse sines and
    cosines at exactly one.

    Asks for gradients only where that can be.
    """
    suspects: list[tuple[RawOp, torch.Tensor]] = []
    for op in graph.ops:
        known = op.name in _ROOTS or op.name in _EDGES
        if (
            op.silent
            or not known
            or not op.inputs
            or not op.inputs[0].requires_grad
            or op.inputs[0].is_parameter
        ):
            continue
        exponent = op.args.get("exponent", op.args.get("other", 0.5))
        if op.name == "pow" and not (isinstance(exponent, (int, float)) and 0 < exponent < 1):
            continue
        s = op.inputs[0].statistic
        tensor = op.inputs[0].tensor()
        if op.name in _EDGES:
            if tensor is not None and bool((tensor.detach().abs() == 1).any()):
                suspects.append((op, tensor))
            continue
        if (
            s is not None
            and tensor is not None
            and (s.min is None or s.min <= 0)
            and bool((tensor == 0).any())
        ):
            suspects.append((op, tensor))
    if not suspects:
        return None
    suspects = suspects[:8]
    grads = torch.autograd.grad(
        root, [t for _, t in suspects], torch.ones_like(root), retain_graph=True, allow_unused=True
    )
    for (op, _), grad in zip(reversed(suspects), reversed(grads), strict=True):
        if grad is not None and not bool(torch.isfinite(grad).all()):
            return _describe(op, op.outputs[0], paths) | {
                "phase": "backward",
                "reason": f"gradient of {op.name} at {'one' if op.name in _EDGES else 'zero'}",
            }
    return None
