"""Checks that weigh evidence in the one way there is: no number of their own, no comparison of what
was measured, no status written by hand. The count of those that have not moved may only fall.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sawbones import faults as rooms

NOT_MOVED = 65

(ROOT,) = rooms.__path__
CHECKS = sorted(Path(ROOT).glob("*/*/check.py"))
ORDERINGS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# What may be ordered: places in the run and in the program, not quantities.
PLACES = {"step", "seq", "index", "line", "microstep", "epoch", "time_dim", "ndim", "rank", "size"}


def complaints(source: str) -> list[str]:
    return [f"line {line}: {what}" for line, what in _complaints(ast.parse(source))]


def _complaints(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield node.lineno, f"the number {node.value}: make it a limit with unit and reason"
        if isinstance(node, ast.Compare) and _orders_quantities(node):
            yield node.lineno, f"compares {ast.unparse(node)}: ask a limit"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
            yield node.lineno, "writes a status by hand: use evidence.finding"


def _orders_quantities(node: ast.Compare) -> bool:
    ordered = any(isinstance(op, ORDERINGS) for op in node.ops)
    return ordered and not any(_is_count_or_place(s) for s in (node.left, *node.comparators))


def _is_count_or_place(side: ast.expr) -> bool:
    """A length, a whole number, or a place such as a step or an index."""
    if isinstance(side, ast.Constant):
        return isinstance(side.value, int)
    if isinstance(side, ast.UnaryOp):
        return _is_count_or_place(side.operand)
    if isinstance(side, ast.BinOp):
        return _is_count_or_place(side.left) or _is_count_or_place(side.right)
    if isinstance(side, ast.Call):
        return ast.unparse(side.func) == "len"
    if isinstance(side, ast.Name):
        return side.id.isupper() or side.id in PLACES
    return isinstance(side, ast.Attribute) and side.attr in PLACES


def test_the_number_of_checks_that_have_not_moved_only_falls() -> None:
    left = {p.parent.name: complaints(p.read_text(encoding="utf-8")) for p in CHECKS}
    assert sum(bool(found) for found in left.values()) == NOT_MOVED


@pytest.mark.parametrize(
    "source, said",
    [
        ("if share > 0.3: pass", "the number 0.3"),
        ("if found.share >= limit: pass", "compares found.share >= limit"),
        ("Finding('x', 'likely', 1)", "writes a status by hand"),
    ],
)
def test_what_a_moved_check_must_not_do_is_seen(source: str, said: str) -> None:
    assert any(said in text for text in complaints(source))


def test_lengths_steps_and_limits_are_free() -> None:
    allowed = """
if len(rows) < 2 or event.step > first.step or limits.SHARE.reached_by(share): pass
if len(rows) < MIN_ROWS: pass
"""
    assert complaints(allowed) == []
