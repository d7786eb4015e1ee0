"""torch's own initialisation: the statement that overwrites it goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import remove
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import called_name


def own_initialisation(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        if called_name(statement.value).endswith("_"):
            yield Change(
                "Keep torch's own initialisation: leave "
                f"{source.text_of(statement).splitlines()[0]} out.",
                (remove(source, statement),),
            )
