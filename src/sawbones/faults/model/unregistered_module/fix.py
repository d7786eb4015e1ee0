"""Keep modules and parameters where the model can find them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, first_in, replace
from sawbones.fixing.names import full_name, spelled, value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

PLAIN = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
BUILTIN = ("list", "tuple", "dict")


def fix(case: Case) -> Iterator[Change]:
    seen: set[tuple[Edit, ...]] = set()
    for source, site in case.places():
        for value in _holders(source, site.line):
            name, edits = _kept(source, value)
            # A list that is left plain would leave its own out of the model.
            others = [o for o in _beside(source, value) if o is not value]
            more = tuple(e for other in others for e in _kept(source, other)[1])
            edits = tuple(dict.fromkeys((*edits, *more)))
            if edits not in seen:
                seen.add(edits)
                yield Change(f"Keep them in {name}, so that the model owns them.", edits)
    for source, site in case.places():
        statement = source.statement_at(site.line)
        outer = source.around(statement) if statement is not None else ()
        owner = next((n for n in outer if isinstance(n, ast.ClassDef)), None)
        if owner is not None and not owner.bases and not owner.keywords:
            yield from _as_module(source, owner)


def _as_module(source: Source, owner: ast.ClassDef) -> Iterator[Change]:
    """A plain class that holds layers becomes a module."""
    methods = {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}
    if "__init__" not in methods:
        return
    name, edits = spelled(source, "torch.nn.Module")
    named = source.span(owner)[0] + len(f"class {owner.name}".encode())
    edits += (
        Edit(source.file, named, named, f"({name})"),
        first_in(source, methods["__init__"].body, "super().__init__()"),
    )
    if "__call__" in methods:
        at = source.utf8.index(b"__call__", source.span(methods["__call__"])[0])
        edits += (Edit(source.file, at, at + len("__call__"), "forward"),)
    yield Change(f"Make {owner.name} a module, so that the model owns its layers.", edits)


def _kept(source: Source, value: ast.expr) -> tuple[str, tuple[Edit, ...]]:
    made = value_of(source, value)
    parameters = any(
        isinstance(n, ast.Attribute | ast.Name)
        and (n.attr if isinstance(n, ast.Attribute) else n.id) == "Parameter"
        for n in ast.walk(made)
    )
    maps = isinstance(made, (ast.Dict, ast.DictComp)) or _builtin(made) == "dict"
    kind = "Dict" if maps else "List"
    name, imports = spelled(source, f"torch.nn.{'Parameter' if parameters else 'Module'}{kind}")
    if _builtin(value) and isinstance(value, ast.Call):
        return name, (*imports, replace(source, value.func, name))
    empty = isinstance(value, (ast.List, ast.Dict)) and not ast.dump(value).count("Call")
    text = f"{name}()" if empty else f"{name}({source.text_of(value)})"
    return name, (*imports, replace(source, value, text))


def _builtin(node: ast.expr) -> str:
    """`tuple` of `tuple(...)`."""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return called_name(node) if named and called_name(node) in BUILTIN else ""  # type: ignore[arg-type]


def _holders(source: Source, line: int) -> Iterator[ast.expr]:
    """Lists and dicts that the object is given here, or that what is made here is put into."""
    around = [n for n in source.nodes_at(line) if isinstance(n, ast.Assign)]
    for node in around:
        if _is_plain(source, node.value) and _is_own(node.targets[0]):
            yield node.value
    put = [n for n in source.nodes_at(line) if isinstance(n, (ast.Assign, ast.Expr))]
    for statement in put:
        target = _target(statement)
        if target is None:
            continue
        for other in ast.walk(source.tree):
            if not isinstance(other, ast.Assign) or not isinstance(other.value, PLAIN):
                continue
            if any(ast.unparse(t) == target for t in other.targets):
                yield other.value


def _is_plain(source: Source, value: ast.expr) -> bool:
    """A container of Python's own, by itself, under a name or on one side of a choice."""
    if isinstance(value, ast.IfExp):
        return any(_is_plain(source, side) for side in (value.body, value.orelse))
    made = value_of(source, value)
    return isinstance(made, PLAIN) or bool(_builtin(made))


def _beside(source: Source, value: ast.expr) -> Iterator[ast.expr]:
    """Containers of layers or parameters that the same function gives to the object."""
    for node in ast.walk(source.function_of(value)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
            continue
        if _is_plain(source, node.value) and _holds_layers(source, node.value):
            yield node.value


def _holds_layers(source: Source, value: ast.expr) -> bool:
    owned = {n.name for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef)}
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
    return any(
        full_name(source, call.func).startswith("torch.nn.") or called_name(call) in owned
        for call in calls
    )


def _is_own(target: ast.expr) -> bool:
    """An attribute, or a name that is handed on to one."""
    return isinstance(target, ast.Name) or (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    )


def _target(node: ast.stmt) -> str | None:
    """`self.layers` of `self.layers[k] = ...` and of `self.layers.append(...)`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return ast.unparse(node.targets[0].value)
    call = node.value if isinstance(node, ast.Expr) else None
    adds = ("append", "insert", "extend")
    func = call.func if isinstance(call, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr in adds:
        return ast.unparse(func.value)
    return None
