"""A function with a name in the place of a lambda, so that workers can be given it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import before, replace
from sawbones.fixing.recipes import Case, Change


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if not isinstance(node, ast.Lambda):
                continue
            statement = source.statement(node)
            if source.parents[statement] is not source.tree:
                continue
            used = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
            defined = {n.name for n in source.tree.body if isinstance(n, ast.FunctionDef)}
            name = "prepared" if "prepared" not in used | defined else "prepared_row"
            text = (
                f"def {name}({ast.unparse(node.args)}):\n    return {source.text_of(node.body)}\n\n"
            )
            yield Change(
                "Give the workers a function with a name.",
                (before(source, statement, text), replace(source, node, name)),
            )
            return
