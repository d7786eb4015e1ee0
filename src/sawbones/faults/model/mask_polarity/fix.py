"""Turn the mask where it is handed to the attention, so that its name keeps its meaning; else where
it is made into a penalty, or where it is compared.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import Edit, rename_attribute, replace
from sawbones.fixing.expressions import in_brackets, in_comparison, inverted, mask_arguments, turned
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source

OPPOSITE = {"ne": "eq", "eq": "ne"}
SUMMARY = "Turn the mask: leave out what it kept, keep what it left out."


def fix(case: Case) -> Iterator[Change]:
    seen: set[Edit] = set()
    places = list(case.places())
    for way in (_handed_over, _as_penalty, _compared):
        for source, site in places:
            for edit in way(source, site.line):
                if edit not in seen:
                    seen.add(edit)
                    yield Change(SUMMARY, (edit,))


def _handed_over(source: Source, line: int) -> Iterator[Edit]:
    for node in source.nodes_at(line):
        for value in mask_arguments(node) if isinstance(node, ast.Call) else ():
            yield turned(source, value) if _is_comparison(value) else inverted(source, value)


def _is_comparison(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1


def _as_penalty(source: Source, line: int) -> Iterator[Edit]:
    """`keep * -1e4` hides what is kept; `(1 - keep) * -1e4` the rest."""
    for node in source.nodes_at(line):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        for mask, number in ((node.left, node.right), (node.right, node.left)):
            negative = isinstance(number, ast.UnaryOp) and isinstance(number.op, ast.USub)
            if not negative or not _is_large(number) or literal(mask) is not None:
                continue
            taken = isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.Sub)
            if taken and isinstance(mask, ast.BinOp) and literal(mask.left) == 1:
                rest = in_brackets(source, mask.right)
            else:
                rest = f"(1.0 - {source.text_of(mask)})"
            yield replace(source, node, f"{rest} * {source.text_of(number)}")


def _is_large(number: ast.expr) -> bool:
    """Beyond what scores reach."""
    value = literal(number.operand) if isinstance(number, ast.UnaryOp) else None
    return value is not None and value >= 100


def _compared(source: Source, line: int) -> Iterator[Edit]:
    for node in in_comparison(source, line):
        yield turned(source, node)
    for call in source.calls_at(line, *OPPOSITE):
        if isinstance(call.func, ast.Attribute):
            yield rename_attribute(source, call.func, OPPOSITE[call.func.attr])
