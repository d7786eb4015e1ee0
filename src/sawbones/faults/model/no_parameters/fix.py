"""Set nn.Module up before it is given layers, and keep them where the module finds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.faults.model.unregistered_module.fix import fix as kept_in_the_model
from sawbones.fixing.editing import first_in
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        statement = source.statement_at(site.line)
        scope = source.function_of(statement) if statement is not None else None
        if not isinstance(scope, ast.FunctionDef) or scope.name != "__init__":
            continue
        if any(isinstance(n, ast.Name) and n.id == "super" for n in ast.walk(scope)):
            continue
        yield Change(
            "Call super().__init__() first in the constructor.",
            (first_in(source, scope.body, "super().__init__()"),),
        )
        return
    yield from kept_in_the_model(case)
