"""Layers that a class of the user's would make, and that its object does not hold: in a method that
has not run, or under names that are gone when the constructor returns. Read off the source; what a
name stands for is looked up, and nothing is called.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from sawbones.observe.post_mortem.sources import Source, Sources, dotted, statements
from sawbones.observe.sites import is_user_file
from sawbones.schema.site import Site


@dataclass
class Unkept:
    not_run: list[str] = field(default_factory=list)  # methods that make layers
    local: list[str] = field(default_factory=list)  # names in the constructor
    lines: dict[str, Site] = field(default_factory=dict)


def unkept_layers(module: nn.Module, sources: Sources) -> Unkept:
    found = Unkept()
    held = _held_names(module)
    for name, method in _own_methods(type(module)):
        code = method.__code__
        if not is_user_file(code.co_filename) or not code.co_argcount:
            continue
        source = sources(code.co_filename)
        scope = source.scope(code.co_firstlineno, name)
        if not isinstance(scope, ast.FunctionDef):
            continue
        owner = f"{code.co_varnames[0]}."
        made = list(_layers_made(scope, method, source))
        kept = [target.removeprefix(owner) for target, _ in made if target.startswith(owner)]
        if name != "__init__" and kept and not held & set(kept):
            found.not_run.append(name)
            found.lines.setdefault(name, source.site(scope.lineno, name))
        if name == "__init__":
            for target, line in made:
                if "." not in target:
                    found.local.append(target)
                    found.lines.setdefault(target, source.site(line, name))
    return found


def _own_methods(cls: type) -> Iterator[tuple[str, types.FunctionType]]:
    """Those that are written by the user: of the class, and of its bases up to those of torch."""
    for base in cls.__mro__:
        if str(base.__module__).split(".")[0] == "torch":
            return
        for name, value in vars(base).items():
            if type(value) is types.FunctionType:
                yield name, value


def _held_names(module: nn.Module) -> set[str]:
    own = object.__getattribute__(module, "__dict__")
    found = set(own)
    for table in ("_modules", "_parameters", "_buffers"):
        found |= set(own.get(table) or ())
    return found


def _layers_made(
    scope: ast.FunctionDef, method: types.FunctionType, source: Source
) -> Iterator[tuple[str, int]]:
    """(what it is called, line) of statements that put a module or parameter under a name."""
    for node, _ in statements(scope):
        if not isinstance(node, ast.Assign) or not _makes_layer(node.value, method.__globals__):
            continue
        yield from ((dotted(t), node.lineno) for t in node.targets if dotted(t))


def _makes_layer(value: ast.expr, known: Mapping[str, object]) -> bool:
    cls = _looked_up(dotted(value.func), known) if isinstance(value, ast.Call) else None
    return isinstance(cls, type) and issubclass(cls, (nn.Module, torch.nn.Parameter))


def _looked_up(name: str, known: Mapping[str, object]) -> object:
    first, *rest = name.split(".")
    found = known.get(first)
    for part in rest:
        found = vars(found).get(part) if isinstance(found, types.ModuleType) else None
    return found
