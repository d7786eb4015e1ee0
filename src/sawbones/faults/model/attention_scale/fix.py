"""Divide the scores by the root of the width of a head, once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sawbones.fixing.editing import EditRefused, keyword_of, remove_keyword, replace, set_keyword
from sawbones.fixing.expressions import operand
from sawbones.fixing.names import is_simple
from sawbones.fixing.numbers import literal
from sawbones.fixing.recipes import Case, Change
from sawbones.fixing.source import Source, called_name
from sawbones.stats.sequences import attention_ops

ROOT = 0.5
PRODUCTS = ("matmul", "bmm", "baddbmm", "einsum")


def fix(case: Case) -> Iterator[Change]:
    seen: set[tuple[str, int, int]] = set()
    for source, site in case.places():
        for node in source.nodes_at(site.line):
            if not isinstance(node, ast.expr):
                continue
            key = (source.file, node.lineno, node.col_offset)
            if isinstance(node, ast.Call) and called_name(node) == "scaled_dot_product_attention":
                yield _by_torch(source, node)
            elif (power := _root_times(node)) is not None:
                seen.add(key)
                yield Change(
                    "Divide by the root, do not multiply.", (replace(source, power, "-0.5"),)
                )
            elif key not in seen and _is_product(node):
                seen.add(key)
                yield from _scaled(source, node, _head_width(case))
            elif key not in seen and isinstance(node, ast.BinOp) and _is_factor(node):
                seen.add(key)
                yield from _other_factor(source, node, _head_width(case))


def _by_torch(source: Source, call: ast.Call) -> Change:
    """torch scales by itself: once, where nobody else does."""
    if keyword_of(call, "scale") is not None:
        return Change(
            "Leave the scale of the attention to torch.", (remove_keyword(source, call, "scale"),)
        )
    edit = set_keyword(source, call, "scale", "1.0")
    return Change("The scores have their scale: scale=1.0.", (edit,))


def _root_times(node: ast.expr) -> ast.expr | None:
    """The 0.5 of `scores * width ** 0.5`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    root = node.right
    if not isinstance(root, ast.BinOp) or not isinstance(root.op, ast.Pow):
        return None
    return root.right if literal(root.right) == ROOT else None


def _is_product(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and called_name(node) in PRODUCTS


def _head_width(case: Case) -> int | None:
    """As the attention of the first deep step has it."""
    widths = {a.head_dim for deep in case.run.deep[:1] for a, _ in attention_ops(deep)}
    return widths.pop() if len(widths) == 1 else None


def _is_factor(node: ast.BinOp) -> bool:
    """Scores times or over a number that is written there."""
    return isinstance(node.op, (ast.Mult, ast.Div)) and literal(node.right) is not None


def _other_factor(source: Source, node: ast.BinOp, width: int | None) -> Iterator[Change]:
    if width is not None:
        text = f"{source.text_of(node.left)} / {width} ** 0.5"
        yield Change(
            f"Divide the scores by the root of a head's width: {width} ** 0.5.",
            (replace(source, node, text),),
        )


def _scaled(source: Source, node: ast.expr, width: int | None) -> Iterator[Change]:
    query = _query(source, node)
    if query is None or (not is_simple(query) and (width is None or _is_weights(query))):
        return
    simple = is_simple(query)
    root = f"{source.text_of(query)}.shape[-1] ** 0.5" if simple else f"{width} ** 0.5"
    text = source.text_of(node)
    try:
        edit = replace(source, node, f"({text} / {root})")
    except EditRefused:
        return
    yield Change(f"Divide the scores by {root}.", (edit,))


def _is_weights(node: ast.expr) -> bool:
    """Scores that have become shares: what they are multiplied with are the values."""
    return isinstance(node, ast.Call) and called_name(node) in ("softmax", "dropout")


def _query(source: Source, node: ast.expr) -> ast.expr | None:
    """The first of the two that are multiplied."""
    if isinstance(node, ast.BinOp):
        return node.left
    if not isinstance(node, ast.Call):
        return None
    if called_name(node) == "einsum":
        return node.args[1] if len(node.args) > 1 else None
    return operand(source, node)
