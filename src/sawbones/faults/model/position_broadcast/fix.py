"""Positions along the sequence, not along the batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, rename_attribute, replace
from sawbones.fixing.expressions import sizes_in, unwrapped
from sawbones.fixing.names import bindings, is_scope, value_of
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.stats.positions import time_dim_of

SUMMARY = "Take the positions along the sequence."


def fix(case: Case) -> Iterator[Change]:
    time = time_dim_of(case.run.deep[0]) if case.run.deep else 1
    seen: set[tuple[Edit, ...]] = set()
    for source, site in case.places():
        for node in _codes(source, site.line):
            for edits in _turned(source, node, time):
                if edits and edits not in seen:
                    seen.add(edits)
                    yield Change(SUMMARY, edits)


def _codes(source: Source, line: int) -> Iterator[ast.expr]:
    """Expressions of the line that take something out of a table or count, seen through names, the
    longest first: a part of one is not turned for itself.
    """
    inside: set[ast.AST] = set()
    covering = [n for n in source.nodes_at(line) if isinstance(n, ast.expr)]
    for node in sorted(covering, key=lambda n: -len(source.text_of(n))):
        made = value_of(source, node) if isinstance(node, ast.Name) else node
        sides = [made.body, made.orelse] if isinstance(made, ast.IfExp) else [made]
        for side in sides:
            if isinstance(side, (ast.Subscript, ast.Call)) and side not in inside:
                inside.update(ast.walk(side))
                yield side


def _turned(source: Source, node: ast.expr, time: int) -> Iterator[tuple[Edit, ...]]:
    lengths = tuple(_lengths(source, node, time))
    axes = tuple(_axes(source, node))
    if axes:
        yield (*lengths, *axes)
    for cut in ast.walk(node) if lengths else ():
        if isinstance(cut, ast.Subscript) and any(
            e in lengths for e in _lengths(source, cut, time)
        ):
            stop = source.span(cut)[1]
            if not isinstance(cut.value, ast.Attribute) or cut.value.attr != "shape":
                yield (*lengths, Edit(source.file, stop, stop, ".transpose(0, 1)"))
    yield lengths


def _lengths(source: Source, node: ast.expr, time: int) -> Iterator[Edit]:
    """The number of examples becomes that of positions, where something is counted or cut."""
    for part in ast.walk(node):
        counts = isinstance(part, ast.Call) and called_name(part) == "arange"
        if not counts and not isinstance(part, ast.Slice):
            continue
        for _, axis, number in sizes_in(part):
            if number == 1 - time:
                yield replace(source, axis, str(time))
        for name in ast.walk(part):
            if isinstance(name, ast.Name) and (other := _beside(source, name, time)) is not None:
                yield replace(source, name, source.text_of(other))
            elif (
                isinstance(name, ast.Subscript)
                and isinstance(name.value, ast.Name)
                and literal(name.slice) == 1 - time
            ):
                yield replace(source, name.slice, str(time))


def _beside(source: Source, name: ast.Name, time: int) -> ast.expr | None:
    """`t` for `b`, where `b, t = x.shape` bound them."""
    scope = next(s for s in source.around(name) if is_scope(s))
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
            continue
        names = node.targets[0].elts
        sized = any(
            isinstance(n, ast.Attribute) and n.attr in ("shape", "size")
            for n in ast.walk(node.value)
        )
        if sized and len(names) > 1 and ast.unparse(names[1 - time]) == name.id:
            return None if bindings(source, name.id, scope) else names[time]
    return None


def _axes(source: Source, node: ast.expr) -> Iterator[Edit]:
    """The new axis on the other side; positions repeated as a whole; a table left as it is."""
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
            yield from _new_axis(source, part.slice.elts)
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
            continue
        if called_name(part) == "repeat_interleave" and len(part.args) == 1:
            yield rename_attribute(source, part.func, "repeat")
        elif called_name(part) == "unsqueeze" and len(part.args) == 1:
            axis = literal(part.args[0])
            if axis in (0, 1):
                yield replace(source, part.args[0], "0" if axis else "1")
        elif called_name(part) in ("mean", "sum") and any(
            k.arg == "keepdim" for k in part.keywords
        ):
            yield unwrapped(source, part)


def _new_axis(source: Source, parts: list[ast.expr]) -> Iterator[Edit]:
    """`[:n, None]` -> `[None, :n]` and back; a rest of the table -> its beginning."""
    new = [isinstance(p, ast.Constant) and p.value is None for p in parts]
    if new == [False, True]:
        start, stop = source.span(parts[0])
        yield Edit(source.file, start, start, "None, ")
        yield Edit(source.file, stop, source.span(parts[1])[1], "")
    elif new == [True, False]:
        stop = source.span(parts[1])[1]
        yield Edit(source.file, source.span(parts[0])[0], source.span(parts[1])[0], "")
        yield Edit(source.file, stop, stop, ", None")
    for part in parts:
        lower = part.lower if isinstance(part, ast.Slice) and not part.upper else None
        if isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Sub):
            yield replace(source, part, f": {source.text_of(lower.left)}")
