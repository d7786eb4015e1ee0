"""A function with a name at the top of the file, so that workers can be given it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from sawbones.fixing.editing import above, remove, replace
from sawbones.fixing.names import bound_in, free_names
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

SUMMARY = "Give the workers a function of the top level, by its name."


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, ast.Lambda) and _moves_up(source, node):
                name = _new_name(source)
                body = source.text_of(node.body)
                text = f"def {name}({ast.unparse(node.args)}):\n    return {body}"
                edits = (above(source, source.outermost(node), text), replace(source, node, name))
                yield Change(SUMMARY, edits)
                return
            inner = (
                isinstance(node, ast.FunctionDef) and source.function_of(node) is not source.tree
            )
            if inner and isinstance(node, ast.FunctionDef) and _moves_up(source, node):
                start, stop = source.line_start(node.lineno), source.span(node)[1]
                text = textwrap.dedent(source.utf8[start:stop].decode())
                yield Change(
                    SUMMARY, (above(source, source.outermost(node), text), remove(source, node))
                )
                return


def _moves_up(source: Source, function: ast.FunctionDef | ast.Lambda) -> bool:
    """It uses nothing of the functions around it."""
    around = [s for s in source.around(function) if isinstance(s, (ast.FunctionDef, ast.Lambda))]
    local = {name for scope in around for name in bound_in(scope)}
    return not free_names(function) & local


def _new_name(source: Source) -> str:
    used = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    used |= {
        n.name for n in ast.walk(source.tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))
    }
    name = "prepared"
    while name in used:
        name += "_row"
    return name
