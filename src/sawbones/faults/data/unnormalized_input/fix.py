"""Mean 0 and spread 1 for every column, before the data are handed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import after, before
from sawbones.fixing.expressions import calls_near
from sawbones.fixing.recipes import Case, Change
from sawbones.stats.evaluations import validation_curve


def fix(case: Case) -> Iterator[Change]:
    evaluated = len(validation_curve(case.run)[1]) or case.run.evaluation.passes
    unsafe = "evaluation and use need the same mean and spread" if evaluated else ""
    for source, call in calls_near(case, "TensorDataset"):
        if call.args and isinstance(call.args[0], ast.Name):
            name = call.args[0].id
            line = _standardised(name)
            edit = before(source, source.statement(call), line)
            yield Change(f"Standardise the inputs: {line}.", (edit,), unsafe)
    for source, site in list(case.places())[:1]:
        statement = source.statement_at(site.line)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if statement is not None and len(targets) == 1 and isinstance(targets[0], ast.Name):
            line = _standardised(targets[0].id)
            yield Change(
                f"Standardise the inputs: {line}.", (after(source, statement, line),), unsafe
            )


def _standardised(name: str) -> str:
    """A column that never changes has no spread: the small number keeps it at 0."""
    return f"{name} = ({name} - {name}.mean(0)) / ({name}.std(0) + 1e-8)"
