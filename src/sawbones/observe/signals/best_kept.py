"""Assignments that keep something at the best score so far, as the source writes them, and where it
is read once the training that they stand in is over.

    if score < best:
        best, kept = score, weights

An `if` compares a score, and what it is compared with is replaced in the same branch. What else is
assigned there is meant to belong to that score.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from sawbones.observe.signals.source_files import SourceFile

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.While


@dataclass(frozen=True)
class Keep:
    """One name of a function, or attribute of the objects of a class, that keeps something."""

    file: SourceFile
    function: str  # that assigns it
    first: int  # its first line, decorators included; of a module 0
    owner: str  # the class of whose `self` it is an attribute; "": a variable
    name: str
    line: int
    branch: ast.If
    scope: ast.AST = field(repr=False)
    rebound: bool = False  # elsewhere it is given something that may be the weights as well


def keeps_in(file: SourceFile) -> Iterator[Keep]:
    for scope, owner in _scopes(file.tree, ""):
        function = getattr(scope, "name", "<module>")
        decorated = getattr(scope, "decorator_list", [])
        first = min((d.lineno for d in decorated), default=getattr(scope, "lineno", 0))
        own = list(_own_nodes(scope))
        for branch in own:
            if not isinstance(branch, ast.If):
                continue
            compared = _compared(branch.test, own)
            for body in (branch.body, branch.orelse):
                given = [pair for node in body for pair in _assigned(node)]
                replaced = {_root(target) for target, _ in given} | _extremes(own)
                if not compared & replaced:
                    continue
                for target, value in given:
                    attribute = _of_self(target)
                    name = attribute if attribute and owner else _variable(target)
                    if not name or isinstance(value, ast.Constant):
                        continue
                    rebound = _is_rebound(own, target, value)
                    holder = owner if attribute else ""
                    yield Keep(
                        file, function, first, holder, name, target.lineno, branch, scope, rebound
                    )


def read_after(keep: Keep, line: int) -> int | None:
    """Where a variable is read after the loop that keeps it and that `line`, which trains, is in."""
    loops = [node for node in _own_nodes(keep.scope) if isinstance(node, _Loop)]
    both = [x for x in loops if _holds(x, keep.branch.lineno) and _holds(x, line)]
    if not both:
        return None
    end = min(x.end_lineno or 0 for x in both)
    return next((at for at in _reads(keep.scope, keep) if at > end), None)


def attribute_read_after(
    keep: Keep, tree: ast.Module, at: ast.AST, line: int, direct: bool
) -> int | None:
    """The same of an attribute, in the function `at` that is at `line` of its training (`direct`),
    or in a function of `tree` that is called there and nowhere before.
    """
    loops = [node for node in _own_nodes(at) if isinstance(node, _Loop)]
    end = max((x.end_lineno or 0 for x in loops if _holds(x, line)), default=line)
    if direct and (found := next((n for n in _reads(at, keep) if n > end), None)) is not None:
        return found
    called: dict[str, list[int]] = {}
    for node in _own_nodes(at):
        if isinstance(node, ast.Call):
            called.setdefault(_last(node.func), []).append(node.lineno)
    for scope, _ in _scopes(tree, ""):
        name = getattr(scope, "name", "")
        found = next(_reads(scope, keep), None)
        if found is not None and name != keep.function and min(called.get(name, [0])) > end:
            return found
    return None


def function_at(tree: ast.Module, name: str, first: int) -> ast.AST | None:
    for scope, _ in _scopes(tree, ""):
        decorated = getattr(scope, "decorator_list", [])
        begins = min((d.lineno for d in decorated), default=getattr(scope, "lineno", 0))
        if getattr(scope, "name", "<module>") == name and (name == "<module>" or begins == first):
            return scope
    return None


def _scopes(node: ast.AST, owner: str) -> Iterator[tuple[ast.AST, str]]:
    """The module and its functions, each with the class that it is a method of."""
    if isinstance(node, (ast.Module, _Function)):
        yield node, owner
    inner = node.name if isinstance(node, ast.ClassDef) else owner
    for child in ast.iter_child_nodes(node):
        yield from _scopes(child, inner)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Without what is in functions and classes of its own."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (_Function, ast.ClassDef, ast.Lambda)):
            yield from _own_nodes(child)


def _compared(test: ast.AST, own: list[ast.AST]) -> set[str]:
    """What a test orders, by name; a flag stands for the comparison that it was given."""
    flags = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    tests = [test]
    for node in own:
        for target, value in _assigned(node):
            if _variable(target) in flags and isinstance(value, ast.Compare):
                tests.append(value)
    orders = [
        node
        for one in tests
        for node in ast.walk(one)
        if isinstance(node, ast.Compare) and any(isinstance(op, _ORDERS) for op in node.ops)
    ]
    sides = [part for node in orders for part in ast.walk(node) if isinstance(part, ast.expr)]
    return {root for side in sides if (root := _root(side))}


def _extremes(own: list[ast.AST]) -> set[str]:
    """Names that are given the smaller or larger of themselves and something else."""
    found = set()
    for node in own:
        for target, value in _assigned(node):
            if not isinstance(value, ast.Call) or _last(value.func) not in ("min", "max"):
                continue
            if _root(target) in {_root(given) for given in value.args}:
                found.add(_root(target))
    return found


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        if both and len(target.elts) == len(node.value.elts):  # type: ignore[attr-defined]
            yield from zip(target.elts, node.value.elts, strict=True)  # type: ignore[attr-defined]
        elif isinstance(target, ast.Tuple):
            yield from ((part, node.value) for part in target.elts)
        else:
            yield target, node.value


def _is_rebound(own: list[ast.AST], target: ast.expr, value: ast.expr) -> bool:
    """Another assignment gives it neither nothing nor what this one gives it."""
    for node in own:
        for other, given in _assigned(node):
            if _root(other) != _root(target) or ast.dump(given) == ast.dump(value):
                continue
            parts = getattr(given, "elts", None) or getattr(given, "values", None) or ()
            empty = isinstance(given, (ast.Dict, ast.List, ast.Tuple)) and all(
                isinstance(part, ast.Constant) for part in parts
            )
            if not empty and not isinstance(given, ast.Constant):
                return True
    return False


def _root(node: ast.AST) -> str:
    """`x` of `x["loss"]`, and `self.x` of `self.x[0]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return f"{inner}.{node.attr}" if (inner := _root(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _variable(target: ast.expr) -> str:
    root = _root(target)
    return "" if "." in root else root


def _of_self(target: ast.expr) -> str:
    parts = _root(target).split(".")
    return parts[1] if len(parts) == 2 and parts[0] == "self" else ""


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", "") or getattr(node, "id", "")


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _reads(scope: ast.AST, keep: Keep) -> Iterator[int]:
    """Lines that use what is kept, in their order; asking whether there is any is no use of it."""
    asked = {
        id(part)
        for node in ast.walk(scope)
        if isinstance(node, ast.Compare)
        and any(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops)
        for part in (node.left, *node.comparators)
    }
    lines = set()
    for node in ast.walk(scope):
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in asked:
            continue
        named = node.attr if isinstance(node, ast.Attribute) else node.id
        is_alike = named == keep.name and isinstance(node, ast.Attribute) == bool(keep.owner)
        if is_alike and isinstance(node.ctx, ast.Load):
            lines.add(node.lineno)
    return iter(sorted(lines))
