"""Mean 0 and spread 1 for every column, before the data are handed on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from sawbones.fixing.editing import after, before, first_in
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.stats.evaluations import model_inputs

SCALES = 10.0  # between columns; nearer ones are served by one mean and one spread


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
            edit = before(source, cut[0], line) if cut else after(source, statement, line)
            yield Change(f"Standardise the inputs: {line}.", (edit,))
    yield from _in_the_model(case)


def _in_the_model(case: Case) -> Iterator[Change]:
    """The numbers that were measured, where every input passes, in training and in use."""
    model = next((m for m in case.run.modules if not m.path and m.site is not None), None)
    source = case.source(model.site) if model is not None else None
    given = next((i for i in model_inputs(case.run, "train") if i.std), None)
    if source is None or model is None or model.site is None or given is None:
        return
    function = next(
        (n for n in source.nodes_at(model.site.line) if isinstance(n, ast.FunctionDef)), None
    )
    place = re.fullmatch(r"\[0\]\[(\d+)\]", given.path)
    if function is None or place is None or len(function.args.args) < int(place[1]) + 2:
        return
    name = function.args.args[int(place[1]) + 1].arg
    mean, spread = f"{given.mean or 0.0:.4g}", f"{given.std:.4g}"
    columns = given.feature_std
    if columns and len(columns) == given.shape[-1] and max(columns) > SCALES * min(columns):
        means = ", ".join(f"{m:.4g}" for m in given.feature_mean)
        spreads = ", ".join(f"{s or 1.0:.4g}" for s in columns)
        mean, spread = (f"{name}.new_tensor([{text}])" for text in (means, spreads))
    line = f"{name} = ({name} - {mean}) / {spread}"
    summary = "Standardise what the model is given, by the mean and spread that were measured."
    yield Change(summary, (first_in(source, function.body, line),))


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
