"""Mean 0 and spread 1 for every column, before the data are handed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import after, before
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name


def fix(case: Case) -> Iterator[Change]:
    for source, call in calls_near(case, "TensorDataset"):
        if call.args and isinstance(call.args[0], ast.Name):
            name = call.args[0].id
            lines = [_standardised(other, name) for other in _others(source, call, name)]
            lines.append(_standardised(name, name))
            edit = before(source, _first(source, call), "\n".join(lines))
            yield Change(f"Standardise the inputs: {lines[-1]}.", (edit,))
    for source, site in list(case.places())[:1]:
        statement = source.statement_at(site.line)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if statement is not None and len(targets) == 1 and isinstance(targets[0], ast.Name):
            name = targets[0].id
            cut = _cut(source, statement, name)
            line = _standardised(name, source.text_of(cut[1]) if cut is not None else name)
            edit = before(source, cut[0], line) if cut is not None else None
            edit = edit or after(source, statement, line)
            yield Change(f"Standardise the inputs: {line}.", (edit,))


def _standardised(name: str, by: str) -> str:
    """A column that never changes has no spread: the small number keeps it at 0."""
    return f"{name} = ({name} - {by}.mean(0)) / ({by}.std(0) + 1e-8)"


def _cut(source: Source, made: ast.stmt, name: str) -> tuple[ast.stmt, ast.Subscript] | None:
    """Where the first rows are taken for training, `x[:n]`: their mean and spread count."""
    block = source.block(made)
    for statement in block[block.index(made) + 1 :]:
        for node in ast.walk(statement):
            first = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
            if not first or not isinstance(node, ast.Subscript):
                continue
            rows = node.slice
            begins = isinstance(rows, ast.Slice) and rows.lower is None and rows.upper is not None
            if begins and isinstance(node.value, ast.Name) and node.value.id == name:
                return statement, node
    return None


def _beside(source: Source, call: ast.Call) -> list[ast.Call]:
    """All such data sets of the function, in the order of their lines."""
    scope = source.function_of(call)
    found = [
        n
        for n in ast.walk(scope)
        if isinstance(n, ast.Call)
        and called_name(n) == called_name(call)
        and source.function_of(n) is scope
    ]
    return sorted(found, key=lambda n: n.lineno)


def _others(source: Source, call: ast.Call, name: str) -> list[str]:
    """What is evaluated gets mean and spread of the training data."""
    first = [c.args[0] for c in _beside(source, call) if c.args]
    return list(dict.fromkeys(a.id for a in first if isinstance(a, ast.Name) and a.id != name))


def _first(source: Source, call: ast.Call) -> ast.stmt:
    block = source.block(source.statement(call))
    made = [source.statement(c) for c in _beside(source, call)]
    return next((s for s in block if s in made), source.statement(call))
