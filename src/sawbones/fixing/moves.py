"""Moving a whole statement, and putting calls of the loop's objects where they belong."""

from __future__ import annotations

import ast

from sawbones.fixing.editing import Edit, EditRefused, remove
from sawbones.fixing.source import Source, called_name
from sawbones.schema import Site

LOOPS = (ast.For, ast.While, ast.AsyncFor)
BLOCKS = (*LOOPS, ast.With, ast.If, ast.Try)


def move(source: Source, statement: ast.stmt, target: ast.stmt, behind: bool) -> tuple[Edit, ...]:
    """`statement` goes before or behind `target`, with the comment on its line."""
    lines = _own_lines(source, statement)
    old, new = source.indent_of(statement), source.indent_of(target)
    if old != new:
        if len(lines) > 1:
            raise EditRefused("a statement of several lines keeps its depth")
        lines = [new + lines[0].lstrip(" \t")]
    text = "".join(line + source.ending for line in lines)
    last = target.end_lineno or target.lineno
    at = source.line_stop(last) if behind else source.line_start(target.lineno)
    if behind and not source.utf8[:at].endswith((b"\n", b"\r")):
        text = source.ending + text.removesuffix(source.ending)
    return remove(source, statement), Edit(source.file, at, at, text)


def _own_lines(source: Source, statement: ast.stmt) -> list[str]:
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    start, stop = source.span(statement)
    rest = source.utf8[stop : source.line_stop(last)].strip()
    alone = not source.utf8[source.line_start(first) : start].strip()
    if not alone or (rest and not rest.startswith(b"#")):
        raise EditRefused("the statement shares its line with another one")
    return [source.line(number) for number in range(first, last + 1)]


def loop_around(source: Source, node: ast.AST) -> ast.stmt | None:
    """The innermost loop of the same function."""
    for outer in source.around(node):
        if isinstance(outer, LOOPS):
            return outer
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
    return None


def covers(outer: ast.stmt, line: int) -> bool:
    return outer.lineno <= line <= (outer.end_lineno or outer.lineno)


def runs_within(source: Source, outer: ast.stmt, site: Site) -> bool:
    """Whether the line of a site stands in the statement, or in a function that it calls."""
    if site.file == source.file and covers(outer, site.line):
        return True
    function = site.function.rpartition(".")[2]
    calls = (node for node in ast.walk(outer) if isinstance(node, ast.Call))
    return any(called_name(call) == function for call in calls)


def widest_without(source: Source, statement: ast.stmt, lines: set[int]) -> ast.stmt:
    """The outermost block around the statement, in its function, that holds none of the lines."""
    found = statement
    for outer in source.around(statement):
        if not isinstance(outer, BLOCKS) or any(covers(outer, line) for line in lines):
            return found
        found = outer
    return found
