"""Pad on the other side, or read where the text ends on the side that is padded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, keyword_of, replace, set_keyword
from sawbones.fixing.expressions import in_brackets
from sawbones.fixing.names import value_of
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name

FILLED = ("zeros", "full", "ones", "new_zeros", "new_full", "new_ones", "repeat", "full_like")
JOINED = ("cat", "concat", "concatenate", "hstack")


def fix(case: Case) -> Iterator[Change]:
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if isinstance(node, (ast.Call, ast.Assign)):
                yield from _named_side(source, node)
    seen: set[Edit] = set()
    for source, site in case.places():
        statement = source.statement_at(site.line)
        if statement is None:
            continue
        function = source.function_of(statement)
        whole = function if isinstance(function, ast.FunctionDef) else statement
        for edit in _other_side(source, whole):
            if edit not in seen:
                seen.add(edit)
                yield Change("Pad on the other side.", (edit,))
    if " on the left" in case.finding.title:
        yield from _read_at_the_end(case)


def _named_side(source: Source, node: ast.AST) -> Iterator[Change]:
    for given in ast.walk(node):
        part = value_of(source, given) if isinstance(given, ast.expr) else given
        if isinstance(part, ast.Constant) and part.value in ("left", "right"):
            side = "right" if part.value == "left" else "left"
            yield Change(f"Pad on the {side}.", (replace(source, part, f'"{side}"'),))


def _other_side(source: Source, whole: ast.AST) -> Iterator[Edit]:
    """Of `[0] * n + ids` and its like, the same with the padding on the other side."""
    for node in ast.walk(whole):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if _is_filler(source, node.left) != _is_filler(source, node.right):
                left, right = (_operand(source, side) for side in (node.left, node.right))
                yield replace(source, node, f"{right} + {left}")
        elif isinstance(node, ast.Call):
            yield from _of_call(source, node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield from _of_slot(source, node.targets[0])


def _operand(source: Source, node: ast.expr) -> str:
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return source.text_of(node) if product else in_brackets(source, node)


def _of_call(source: Source, call: ast.Call) -> Iterator[Edit]:
    name = called_name(call)
    first = call.args[0] if call.args else None
    if name in JOINED and isinstance(first, (ast.List, ast.Tuple)) and len(first.elts) == 2:
        if _is_filler(source, first.elts[0]) != _is_filler(source, first.elts[1]):
            yield _swapped(source, first.elts[0], first.elts[1])
    elif name == "pad":
        widths = keyword_of(call, "pad", 1) or keyword_of(call, "pad_width", 1)
        if isinstance(widths, (ast.List, ast.Tuple)):
            # numpy has a pair for each axis, the last one for time.
            last = widths.elts[-1] if widths.elts else widths
            pair = last if isinstance(last, (ast.List, ast.Tuple)) else widths
            if len(pair.elts) == 2:
                yield _swapped(source, pair.elts[0], pair.elts[1])
    elif name == "pad_sequence" and keyword_of(call, "padding_side") is None:
        yield set_keyword(source, call, "padding_side", '"left"', 3)


def _swapped(source: Source, one: ast.expr, other: ast.expr) -> Edit:
    start, stop = source.span(one)[0], source.span(other)[1]
    between = source.utf8[source.span(one)[1] : source.span(other)[0]].decode()
    text = source.text_of(other) + between + source.text_of(one)
    return Edit(source.file, start, stop, text)


def _of_slot(source: Source, target: ast.Subscript) -> Iterator[Edit]:
    """`row[-n:] = ids` and `row[width - n:] = ids` -> `row[:n] = ids`, and back."""
    place = target.slice.elts[-1] if isinstance(target.slice, ast.Tuple) else target.slice
    if not isinstance(place, ast.Slice) or place.step is not None:
        return
    low, high = place.lower, place.upper
    size: ast.expr | None = None
    if high is None and isinstance(low, ast.UnaryOp) and isinstance(low.op, ast.USub):
        size = low.operand
    elif high is None and isinstance(low, ast.BinOp) and isinstance(low.op, ast.Sub):
        size = low.right
    elif low is None and high is not None and not isinstance(high, ast.UnaryOp):
        yield replace(source, place, f"-{in_brackets(source, high)}:")
    if size is not None:
        yield replace(source, place, f":{source.text_of(size)}")


def _is_filler(source: Source, node: ast.expr) -> bool:
    """As many of one value as are missing."""
    made = value_of(source, node)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):
        return any(isinstance(s, (ast.List, ast.Tuple)) for s in (made.left, made.right))
    if isinstance(made, ast.ListComp):
        drawn = {
            n.id for c in made.generators for n in ast.walk(c.target) if isinstance(n, ast.Name)
        }
        return not any(isinstance(n, ast.Name) and n.id in drawn for n in ast.walk(made.elt))
    return isinstance(made, ast.Call) and called_name(made) in FILLED


def _read_at_the_end(case: Case) -> Iterator[Change]:
    """Rows that are padded on the left all end at their last position."""
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            where = node.slice if isinstance(node, ast.Subscript) else None
            if not isinstance(where, ast.Tuple) or len(where.elts) != 2:
                continue
            rows, place = where.elts
            counted = isinstance(rows, ast.Call) and called_name(rows) == "arange"
            back = isinstance(place, ast.BinOp) and isinstance(place.op, ast.Sub)
            if counted and back:
                yield Change(
                    "Read each row at its last position, where its text ends.",
                    (replace(source, where, ":, -1"),),
                )
