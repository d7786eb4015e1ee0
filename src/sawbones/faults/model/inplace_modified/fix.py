"""A new value in place of the change in place; an update of a parameter outside of the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, indent, replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.names import spelled
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.MatMult: "@",
}


def fix(case: Case) -> Iterator[Change]:
    for number, (source, site) in enumerate(case.places()):
        statement = source.statement_at(site.line)
        if statement is None:
            continue
        if number == 0 and "parameter" in case.finding.title and _is_update(statement):
            off, imports = spelled(source, "torch.no_grad")
            edits = (*imports, *indent(source, [statement], f"with {off}():"))
            yield Change("Change the parameter outside of the graph.", edits)
            return
        for edits in _anew(source, statement):
            yield Change("Make a new value instead of changing the old one.", edits)


def _is_update(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.AugAssign, ast.Expr, ast.Assign))


def _anew(source: Source, statement: ast.stmt) -> Iterator[tuple[Edit, ...]]:
    if isinstance(statement, ast.AugAssign) and isinstance(
        statement.target, (ast.Name, ast.Attribute)
    ):
        sign = SIGNS.get(type(statement.op))
        if sign is not None:
            target = source.text_of(statement.target)
            value = in_brackets(source, statement.value)
            yield (replace(source, statement, f"{target} = {target} {sign} {value}"),)
        return
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            given = keyword.value
            if keyword.arg == "inplace" and isinstance(given, ast.Constant) and given.value is True:
                yield (replace(source, given, "False"),)
        func = node.func
        if isinstance(func, ast.Attribute) and _in_place(func.attr):
            stop = source.span(func)[1]
            shorter = Edit(source.file, stop - 1, stop, "")
            if isinstance(statement, ast.Expr) and statement.value is node:
                start = source.span(statement)[0]
                kept = Edit(source.file, start, start, f"{source.text_of(func.value)} = ")
                yield (kept, shorter)
            else:
                yield (shorter,)


def _in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and len(name) > 1
