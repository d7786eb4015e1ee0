"""Another name for what was there first, so that the second does not take its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        taken = source.statement_at(site.line)
        if not isinstance(taken, ast.Assign):
            continue
        calls = [n for n in ast.walk(taken.value) if isinstance(n, ast.Call)]
        called = {c.func.id for c in calls if isinstance(c.func, ast.Name)}
        for target in taken.targets:
            if isinstance(target, ast.Name) and target.id in called:
                yield from _renamed(source, taken, target.id)
                return


def _renamed(source: Source, taken: ast.Assign, name: str) -> Iterator[Change]:
    """The one binding in front, and every call of it, get a name of their own."""
    used = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    new = next(
        n for n in (f"{name}_function", f"make_{name}", f"{name}_function_") if n not in used
    )
    scope = source.function_of(taken)
    edits: list[Edit] = []
    for node in ast.walk(scope):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        parent = source.parents[node]
        is_call = isinstance(parent, ast.Call) and parent.func is node
        first = isinstance(node.ctx, ast.Store) and node.lineno < taken.lineno
        if is_call or first:
            edits.append(replace(source, node, new))
    yield Change(f"Give what is called a name of its own: {new}.", tuple(edits))
