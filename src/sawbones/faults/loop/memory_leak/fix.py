"""Keep the value without its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import replace
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

KEEPING = ("append", "extend", "add", "appendleft", "insert", "setdefault", "put")


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        for node in _kept(source, statement) if statement is not None else ():
            text = f"{in_brackets(source, node)}.detach()"
            yield Change(f"Keep it without its graph: {text}.", (replace(source, node, text),))


def _kept(source: Source, statement: ast.stmt) -> Iterator[ast.expr]:
    """What is added to a sum, put into a list, or stored in an entry or an attribute."""
    if isinstance(statement, ast.AugAssign):
        yield _in_use(statement.value)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in KEEPING and call.args:
            last = call.args[-1]
            yield from last.elts if isinstance(last, ast.Tuple) else [last]
    elif isinstance(statement, ast.Assign):
        kept = any(isinstance(t, (ast.Subscript, ast.Attribute)) for t in statement.targets)
        sums = isinstance(statement.value, ast.BinOp)
        if kept and not sums:
            yield statement.value
        elif isinstance(statement.value, ast.BinOp):
            yield statement.value.right
            yield statement.value.left


def _in_use(value: ast.expr) -> ast.expr:
    return value.body if isinstance(value, ast.IfExp) else value
