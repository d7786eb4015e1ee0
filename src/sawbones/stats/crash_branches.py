"""A line that would have changed a value, under a condition that did not hold."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from sawbones.schema import CrashFrame, Site

_BITS = {ast.BitOr: "|", ast.BitAnd: "&"}


@dataclass(frozen=True)
class Condition:
    text: str
    site: Site
    fix: str = ""


def condition_of(frame: CrashFrame, names: Sequence[str]) -> Condition | None:
    """The last line above the failing one that gives one of the names another value, where it
    stands under a condition.
    """
    for made in reversed(frame.assignments):
        above = made.name in names and made.branch and made.site.line < frame.site.line
        if not above or made.branch_line in (0, frame.site.line):
            continue
        site = Site(made.site.file, made.branch_line, made.site.function, f"if {made.branch}:")
        text = (
            f"line {made.site.line} changes {made.name} only where {made.branch} (line "
            f"{made.branch_line})"
        )
        meant = precedence(made.branch)
        if meant is None:
            return Condition(text, site)
        read, fixed = meant
        return Condition(f"{text}, which is read as {read}", site, f"Put brackets: if {fixed}:")
    return None


def precedence(condition: str) -> tuple[str, str] | None:
    """(how it is read, how it is meant) of a != b | c != d: | and & bind stronger than a
    comparison.
    """
    try:
        node = ast.parse(condition, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.Compare) or len(node.ops) != 2:
        return None
    middle = node.comparators[0]
    sign = _BITS.get(type(middle.op)) if isinstance(middle, ast.BinOp) else None
    if sign is None or not isinstance(middle, ast.BinOp):
        return None
    first = ast.unparse(ast.Compare(node.left, [node.ops[0]], [middle.left]))
    second = ast.unparse(ast.Compare(middle.right, [node.ops[1]], [node.comparators[1]]))
    inner = f"({ast.unparse(middle)})"
    texts = [ast.unparse(node.left), inner, ast.unparse(node.comparators[1])]
    signs = [_sign(op) for op in node.ops]
    read = f"{texts[0]} {signs[0]} {texts[1]} {signs[1]} {texts[2]}"
    return read, f"({first}) {sign} ({second})"


def _sign(operator: ast.cmpop) -> str:
    whole = ast.unparse(ast.Compare(ast.Name("a"), [operator], [ast.Name("b")]))
    return whole.removeprefix("a ").removesuffix(" b")
