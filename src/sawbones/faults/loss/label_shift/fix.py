"""Targets that are shifted once: a missing shift is made, a second one taken back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, replace
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source


def fix(case: Case) -> Iterator[Change]:
    shift = next((e.value for e in case.finding.evidence if e.expected == 1), None)
    if shift is None:
        return
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is None or isinstance(statement, (ast.For, ast.While, ast.With, ast.If)):
            continue
        yield from _once_too_often(source, statement) if shift > 1 else _missing(source, statement)


def _slices(statement: ast.stmt) -> list[tuple[ast.Subscript, ast.Slice]]:
    """x[:, 1:] and x[:, :-1]: the slice of the last axis, in the order of the text."""
    found = []
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            cut = next(
                (p for p in parts if isinstance(p, ast.Slice) and (p.lower or p.upper)), None
            )
            if cut is not None:
                found.append((node, cut))
    return sorted(found, key=lambda row: (row[0].lineno, row[0].col_offset))


def _once_too_often(source: Source, statement: ast.stmt) -> Iterator[Change]:
    cuts = _slices(statement)
    edits = tuple(replace(source, node, source.text_of(node.value)) for node, _ in cuts)
    if len(edits) == 2:
        yield Change("Shift the targets once, not twice.", edits)


def _missing(source: Source, statement: ast.stmt) -> Iterator[Change]:
    """Inputs and targets are the same part of the tokens: the later one begins one further on."""
    for _, cut in reversed(_slices(statement)):
        if cut.lower is None and isinstance(cut.upper, ast.UnaryOp):
            start, stop = source.span(cut)
            text = source.text_of(cut.upper).lstrip("-").strip()
            yield Change(
                f"Let the targets begin {text} token later.",
                (Edit(source.file, start, stop, f"{text}:"),),
            )
