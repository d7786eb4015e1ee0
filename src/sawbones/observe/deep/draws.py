"""Log-probabilities of what was drawn, and the numbers that they are weighed with in the loss: the
gradient of a policy, or any estimate by a score function.

What a loss does with them is in one sign: that of its gradient with respect to each of them times
its weight. Below zero, what weighs more is made more likely; above, less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.trace.operators import FORMING

OF_DISTRIBUTION = "log_prob"  # how the trace marks the operators of a distribution's own method
_PICKING = frozenset({"gather", "__getitem__", "take_along_dim"})
# Their elements, not reduced, are negative log-probabilities.
_UNLIKELY = frozenset(
    {"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
)
_WEIGHING = frozenset({"mul", "mul_", "dot", "matmul", "mv", "inner", "einsum"})
# On the way from a probability to where it is weighed.
_ON_THE_WAY = FORMING | {
    "add",
    "cat",
    "clamp",
    "div",
    "exp",
    "hstack",
    "log",
    "mean",
    "neg",
    "rsub",
    "stack",
    "sub",
    "sum",
    "vstack",
}
_ROUNDING = 1e-3  # of a sum of probabilities
_MAX_ELEMENTS = 1 << 22
_MAX_PLACES = 8


class Drawn(NamedTuple):
    op: RawOp
    ref: Ref
    fn: str
    way: int  # -1: its elements fall as the probability rises


class _Weighed(NamedTuple):
    op: RawOp
    out: torch.Tensor
    given: torch.Tensor  # what the numbers without gradients are multiplied with


def measure(graph: OpGraph, root: torch.Tensor) -> dict[str, Any] | None:
    """`agreement`: the share of the gradient that makes less likely what weighs more, minus the
    share that makes it more likely. `each`: every decision has a weight of its own. `term`: the
    lines of what is weighed, the one where it meets the rest of the loss first.
    """
    drawn = list(_drawn(graph))
    weighed = _weighed(graph, drawn) if drawn else []
    if not weighed:
        return None
    probabilities = [d.ref.tensor() for d in drawn]
    alive = [(d, p) for d, p in zip(drawn, probabilities, strict=True) if p is not None]
    known = [p for _, p in alive]
    used = torch.autograd.grad([root], known, [torch.ones_like(root)], True, allow_unused=True)
    raised = _sums([w.out for w in weighed], known)
    plain = _sums([w.given for w in weighed], known)
    pulls: list[torch.Tensor] = []
    weights: list[torch.Tensor] = []
    places: dict[tuple[Any, str], dict[str, Any]] = {}
    for (one, _), loss, over, under in zip(alive, used, raised, plain, strict=True):
        if loss is None or over is None or under is None:
            continue
        there = under != 0
        if not bool(there.any()):
            continue
        pulls.append(one.way * loss[there].double())
        weights.append(over[there].double() / under[there].double())
        places.setdefault((one.op.site, one.fn), {"site": one.op.site, "fn": one.fn})
    if not weights:
        return None
    pull, weight = torch.cat(pulls), torch.cat(weights)
    product = pull * weight
    size = float(product.abs().sum())
    if not math.isfinite(size) or size == 0:
        return None
    return {
        "places": list(places.values())[:_MAX_PLACES],
        "term": _term(graph, [w.op for w in weighed]),
        "agreement": float(product.sum()) / size,
        "num": weight.numel(),
        "low": float(weight.min()),
        "high": float(weight.max()),
        "each": sum(w.out.numel() for w in weighed) >= weight.numel(),
    }


def _term(graph: OpGraph, weighed: Sequence[RawOp]) -> list[Any]:
    made = [ref for op in weighed for ref in op.outputs]
    own = {ref.id for ref in made}
    last = weighed[-1]
    for op in graph.after(made):
        trained = {ref.id for ref in op.inputs if ref.requires_grad}
        goes_on = any(ref.requires_grad for ref in op.outputs) and not op.silent
        if goes_on and trained <= own:
            own |= {ref.id for ref in op.outputs}
            last = op
    return list(dict.fromkeys(op.site for op in (last, weighed[-1]) if op.site is not None))


def _sums(
    of: Sequence[torch.Tensor], known: Sequence[torch.Tensor]
) -> tuple[torch.Tensor | None, ...]:
    ones = [torch.ones_like(t) for t in of]
    return torch.autograd.grad(of, known, ones, retain_graph=True, allow_unused=True)


def _drawn(graph: OpGraph) -> Iterator[Drawn]:
    for op in graph.ops:
        ref = op.outputs[0] if op.outputs else None
        if op.silent or ref is None or not ref.requires_grad or not op.inputs:
            continue
        tensor = ref.tensor()
        if tensor is None or tensor.grad_fn is None or tensor.numel() > _MAX_ELEMENTS:
            continue
        if op.args.get("of") == OF_DISTRIBUTION:
            if any(user.args.get("of") != OF_DISTRIBUTION for user in graph.users(ref)):
                yield Drawn(op, ref, OF_DISTRIBUTION, 1)
        elif op.name in _PICKING:
            if _picks_one_of_each(op, ref):
                yield Drawn(op, ref, op.name, 1)
        elif op.name in _UNLIKELY and op.args.get("reduction") == "none":
            yield Drawn(op, ref, op.name, -1)


def _picks_one_of_each(op: RawOp, picked: Ref) -> bool:
    """One element of each distribution, in probabilities or in their logarithms."""
    table = op.inputs[0].tensor()
    if table is None or not table.is_floating_point() or not table.dim():
        return False
    dim = op.args.get("dim", -1)
    dim = dim if isinstance(dim, int) and -table.dim() <= dim < table.dim() else -1
    choices = table.shape[dim]
    if choices < 2 or math.prod(picked.shape) * choices > table.numel():
        return False
    values = table.detach().double()
    sums = values.sum(dim) if bool((values >= 0).all()) else values.exp().sum(dim)
    return bool(((sums - 1).abs() <= _ROUNDING).all())


def _weighed(graph: OpGraph, drawn: Sequence[Drawn]) -> list[_Weighed]:
    """Where they meet numbers without gradients first. Factors that are plain numbers are passed
    by, unless there is nothing else: a return may be one.
    """
    met: list[_Weighed] = []
    by_number: list[_Weighed] = []
    waiting = [d.ref for d in drawn]
    seen: set[int] = set()
    for ref in waiting:
        for op in graph.users(ref):
            if op.index in seen or op.silent or not op.outputs or op.args.get("of"):
                continue
            seen.add(op.index)
            if op.name in _WEIGHING:
                beside = [r for r in op.inputs if r.id != ref.id]
                if not beside and _add(by_number, op, ref):
                    waiting += op.outputs
                elif beside and all(_is_fixed(r) for r in beside):
                    _add(met, op, ref)
            elif op.name in _ON_THE_WAY:
                waiting += op.outputs
    return met or by_number


def _add(found: list[_Weighed], op: RawOp, given: Ref) -> bool:
    out, factor = op.outputs[0].tensor(), given.tensor()
    if out is None or factor is None or out.grad_fn is None or not factor.requires_grad:
        return False
    found.append(_Weighed(op, out, factor))
    return True


def _is_fixed(ref: Ref) -> bool:
    return ref.dtype.startswith(("float", "bfloat")) and not ref.requires_grad
