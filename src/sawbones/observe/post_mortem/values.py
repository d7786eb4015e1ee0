"""What an expression stands for: names, attributes that objects keep in their own dictionary,
constants, and whole numbers computed of them are looked up. Nothing is called.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

MISSING = object()
_WHOLE: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}
MOST_COUNT = 1 << 40

# What every tensor has and no call is needed for.
_OF_TENSORS = ("shape", "dtype", "device", "ndim", "data", "is_leaf", "requires_grad")


class Values:
    """The values of expressions, by the names of one frame."""

    def __init__(self, own: Mapping[str, Any], top: Mapping[str, Any]) -> None:
        self._scopes = (own, top, vars(builtins))

    def __call__(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node.id)
        if isinstance(node, ast.Attribute):
            return held_by(self(node.value), node.attr)
        if isinstance(node, (ast.List, ast.Tuple)):
            items = [self(part) for part in node.elts]
            return MISSING if any(item is MISSING for item in items) else items
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.Name)):
            return _item(self(node.value), self(node.slice))
        if isinstance(node, ast.IfExp):
            test = self(node.test)
            return self(node.body if test else node.orelse) if type(test) is bool else MISSING
        if isinstance(node, ast.BinOp):
            return _computed(node.op, self(node.left), self(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            plain = type(node.operand.value) in (int, float) and isinstance(node.op, ast.USub)
            return -node.operand.value if plain else MISSING  # type: ignore[operator]
        return MISSING

    def _named(self, name: str) -> Any:
        return next((scope[name] for scope in self._scopes if name in scope), MISSING)


def _computed(operator: ast.operator, left: Any, right: Any) -> Any:
    """16 * 5 * 5, H * W: of whole numbers only, which no code of the user's is behind."""
    if type(left) is not int or type(right) is not int or max(abs(left), abs(right)) > MOST_COUNT:
        return MISSING
    if isinstance(operator, ast.FloorDiv):
        return left // right if right else MISSING
    done = _WHOLE.get(type(operator))
    return done(left, right) if done is not None else MISSING


def held_by(owner: Any, name: str) -> Any:
    """An attribute that is kept in a dictionary: what a property would give is not asked for."""
    if owner is MISSING:
        return MISSING
    cls = type(owner)
    if issubclass(cls, types.ModuleType):
        return vars(owner).get(name, MISSING)
    if issubclass(cls, torch.Tensor):
        if name == "grad" and owner.is_leaf:
            return owner.grad
        plain = cls in (torch.Tensor, nn.Parameter) and name in _OF_TENSORS
        return getattr(owner, name) if plain else _of_class(cls, name)
    try:
        held = (
            type.__getattribute__(owner, "__dict__")
            if issubclass(cls, type)
            else object.__getattribute__(owner, "__dict__")
        )
    except AttributeError:
        return _of_class(cls, name)
    if name in held:
        return held[name]
    if issubclass(cls, nn.Module):
        for kept in ("_modules", "_parameters", "_buffers"):
            if name in (held.get(kept) or ()):
                return held[kept][name]
    return _of_class(owner if issubclass(cls, type) else cls, name)


def is_a(value: object, *classes: type) -> bool:
    """By its type alone: isinstance would ask the value for its class."""
    return issubclass(type(value), classes)


def members_of(owner: object) -> dict[str, Any]:
    """What an object keeps in its own dictionary."""
    try:
        held = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def _of_class(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        value = vars(base).get(name, MISSING)
        if value is not MISSING:
            plain = issubclass(type(value), (types.FunctionType, types.MethodDescriptorType))
            return value if plain else MISSING
    return MISSING


def _item(owner: Any, key: Any) -> Any:
    cls = type(owner)
    if cls in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    if cls is dict and type(key) in (str, int):
        return dict.get(owner, key, MISSING)
    return MISSING
