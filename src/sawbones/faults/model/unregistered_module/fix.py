"""Keep modules and parameters where the model can find them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    seen: set[int] = set()
    for source, site in case.places():
        for value in _holders(source, site.line):
            if value.lineno in seen:
                continue
            seen.add(value.lineno)
            parameters = any(
                isinstance(n, ast.Attribute | ast.Name)
                and (n.attr if isinstance(n, ast.Attribute) else n.id) == "Parameter"
                for n in ast.walk(value)
            )
            kind = "Dict" if isinstance(value, (ast.Dict, ast.DictComp)) else "List"
            name, imports = spelled(
                source, f"torch.nn.{'Parameter' if parameters else 'Module'}{kind}"
            )
            empty = isinstance(value, (ast.List, ast.Dict)) and not ast.dump(value).count("Call")
            text = f"{name}()" if empty else f"{name}({source.text_of(value)})"
            yield Change(
                f"Keep them in {name}, so that the model owns them.",
                (*imports, replace(source, value, text)),
            )


def _holders(source: Source, line: int) -> Iterator[ast.expr]:
    """Lists and dicts that the object is given here, or that what is made here is put into."""
    plain = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)
    around = [n for n in source.nodes_at(line) if isinstance(n, ast.Assign)]
    for node in around:
        if isinstance(node.value, plain) and _is_own(node.targets[0]):
            yield node.value
    put = [n for n in source.nodes_at(line) if isinstance(n, (ast.Assign, ast.Expr))]
    for statement in put:
        target = _target(statement)
        if target is None:
            continue
        for other in ast.walk(source.tree):
            if not isinstance(other, ast.Assign) or not isinstance(other.value, plain):
                continue
            if any(ast.unparse(t) == target for t in other.targets):
                yield other.value


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
