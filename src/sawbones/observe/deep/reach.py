"""What the loss reaches: parameters that get no gradient, modules that are not part of the model,
and where the graph is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.modules import ModuleWatch, Paths
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.observe.origins import built_at

_MAX_NODES = 200_000
_CUTS = frozenset(
    {
        "detach",
        "data",
        "detach_",
        "item",
        "numpy",
        "tolist",
        "__array__",
        "__float__",
        "argmax",
        "round",
        "sign",
        "set_data",
    }
)


def leaves(root: torch.Tensor) -> dict[int, torch.Tensor] | None:
    """Every leaf that the backward from `root` would give a gradient; None when the graph is too
    large to walk.
    """
    found: dict[int, torch.Tensor] = {}
    if root.grad_fn is None:
        return {id(root): root} if root.requires_grad else found
    seen = {root.grad_fn}
    waiting: list[Any] = [root.grad_fn]
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            found[id(variable)] = variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
        if len(seen) > _MAX_NODES:
            return None
    return found


def unreached(root: torch.Tensor, watch: ModuleWatch, paths: Paths) -> tuple[str, ...]:
    """Trainable parameters of modules that ran with gradients on, which the loss does not depend
    on.
    """
    reached = leaves(root)
    if reached is None:
        return ()
    missing: dict[str, None] = {}
    ran = {id(call.module): call.module for call in watch.calls if call.grad}
    silent = {
        id(call.module): call.module for call in watch.calls if not call.grad and call.training
    }
    for module in [*ran.values(), *silent.values()]:
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.requires_grad and id(parameter) not in reached:
                missing[paths.parameters.get(id(parameter), f"{paths.of(module)}.{name}")] = None
    return tuple(missing)


def loose_leaves(root: torch.Tensor, paths: Paths) -> list[dict[str, Any]]:
    """Leaves with gradients that belong to no model: learned tensors kept outside of modules."""
    reached = leaves(root) or {}
    return [
        {"shape": tuple(t.shape), "is_parameter": isinstance(t, nn.Parameter)}
        for key, t in reached.items()
        if key not in paths.parameters
    ][:50]


def unregistered(
    roots: Sequence[nn.Module], watch: ModuleWatch, root: torch.Tensor | None
) -> tuple[dict[str, Any], ...]:
    """Modules with parameters that ran inside of a model without being part of it."""
    members = {
        id(module)
        for top in [*roots, *(call.module for call in watch.top_calls)]
        for module in top.modules()
    }
    owned = {
        id(p)
        for top in [*roots, *(call.module for call in watch.top_calls)]
        for p in top.parameters()
    }
    reached = leaves(root) if root is not None else None
    found: dict[int, dict[str, Any]] = {}
    for call in watch.calls:
        module = call.module
        if id(module) in members or id(module) in found or call.depth == 0:
            continue
        parameters = [p for p in module.parameters() if id(p) not in owned]
        if not parameters or any(id(module) in entry["inside"] for entry in found.values()):
            continue
        found[id(module)] = {
            "class": call.cls,
            "site": call.site,
            "built": built_at(module),
            "num_params": sum(p.numel() for p in parameters),
            "trainable": sum(p.numel() for p in parameters if p.requires_grad),
            "reached": None if reached is None else any(id(p) in reached for p in parameters),
            "inside": {id(m) for m in module.modules()},
        }
    return tuple({k: v for k, v in entry.items() if k != "inside"} for entry in found.values())


def cuts(
    graph: OpGraph, watch: ModuleWatch, paths: Paths, root: Ref | None
) -> list[dict[str, Any]]:
    """Places where a value that carried gradients goes on without them; `feeds_loss` says that the
    loss uses the result.
    """
    behind = {op.index for op in graph.behind(root)} if root is not None else set()
    found = [
        {
            "op": op.index,
            "name": op.name,
            "site": op.site,
            "module": paths.of(op.module),
            "no_grad": op.silent,
            "learned_input": any(r.requires_grad and not r.is_parameter for r in op.inputs),
            "feeds_loss": op.index in behind,
            "switched": op.switched,
        }
        for op in cutting(graph)
    ]
    ordered = sorted(found, key=lambda cut: not cut["feeds_loss"])
    return ordered[:64]


def cutting(graph: OpGraph) -> Iterator[RawOp]:
    """Operators that are given values with gradients and hand them on without."""
    inside = _inside_custom_functions(graph)
    for op in graph.ops:
        if op.index in inside or not any(r.requires_grad for r in op.inputs):
            continue
        dropped = bool(op.outputs) and not any(r.requires_grad for r in op.outputs)
        floats = any(r.dtype.startswith(("float", "bfloat")) for r in op.outputs)
        if op.name in _CUTS or (op.silent and dropped and floats):
            yield op


def _inside_custom_functions(graph: OpGraph) -> set[int]:
    """Operators of a custom autograd function's forward: it runs without gradients, and its result
    has them nevertheless.
    """
    found: set[int] = set()
    for op in reversed(graph.ops):
        if not op.silent:
            continue
        for out in op.outputs:
            users = graph.users(out)
            if (
                any(r.id == out.id and r.requires_grad for user in users for r in user.inputs)
                and not out.is_parameter
            ):
                found.add(op.index)
            if any(user.index in found for user in users):
                found.add(op.index)
    return found
