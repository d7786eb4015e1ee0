"""The mean in place of the sum."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, rename_attribute, replace
from sawbones.fixing.expressions import constructor
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    seen: set[Edit] = set()
    for source, site in case.places():
        for call in source.calls_at(site.line, *_names(source, site.line)):
            for edit in _edits(source, call):
                if edit not in seen:
                    seen.add(edit)
                    yield Change("Average over the targets in place of summing.", (edit,))


def _names(source: Source, line: int) -> set[str]:
    found = {"sum"}
    for node in source.nodes_at(line):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found.add(name)
    return found


def _edits(source: Source, call: ast.Call) -> Iterator[Edit]:
    for made in (call, constructor(source, call)):
        given = keyword_of(made, "reduction") if made is not None else None
        if given is not None:
            yield replace(source, given, '"mean"')
    if isinstance(call.func, ast.Attribute) and call.func.attr == "sum":
        whole = not call.keywords and len(call.args) <= 1
        if whole:
            yield rename_attribute(source, call.func, "mean")
