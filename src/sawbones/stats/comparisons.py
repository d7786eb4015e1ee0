"""How evaluations compare guesses with labels: pairs that were never meant to meet, the largest of
a single output or of a whole batch, and equality of real numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sawbones.schema.evaluation import Met, Node
from sawbones.stats.evaluations import CASTS, consumers, made_by

DIFFERENCES = ("sub", "rsub")
_COMPARED = ("eq", "ne", *DIFFERENCES)
_KEEPS_EACH = (*CASTS, "abs", "pow", "square", "invert")
_WHOLE = ("mean", "sum", "count_nonzero", "nansum", "nanmean", "add.reduce")
_ROUNDS = ("round", "round_", "rint", "floor", "ceil", "trunc", "sign", "argmax", "max", "topk")


class Pairs(NamedTuple):
    """Rows of one side met all rows of the other."""

    node: Node
    guesses: tuple[int, ...]
    labels: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.guesses[0]


def every_pair(node: Node, everything: Sequence[Node]) -> Pairs | None:
    """(N, 1) against (N,): N x N pairs, of which all are averaged."""
    if node.op not in _COMPARED or len(node.given) != 2 or "output" not in node.roles:
        return None
    if node.roles == ("output", "output"):
        return None  # pairs of outputs are meant to meet
    sides = [_largest(given) for given in node.given]
    made = _largest(node.result)
    first, second = sides
    if not first or not second or sorted((len(first), len(second))) != [1, 2]:
        return None
    rows = max(first[0], second[0])
    crossed = {first, second} == {(rows, 1), (rows,)} and made == (rows, rows)
    if rows < 2 or not crossed or _counts_up(node.given, rows):
        return None
    whole = [n for n in consumers(everything, node, _KEEPS_EACH) if n.op in _WHOLE]
    if not whole or any(_has_axis(n.args) for n in whole):
        return None
    guesses, labels = (first, second) if node.roles[0] == "output" else (second, first)
    return Pairs(node, guesses, labels)


def largest_of_one(node: Node, axis: int | None) -> tuple[int, ...] | None:
    """The shape of outputs whose largest is taken along an axis of length 1 every time."""
    shapes = node.given[0].shapes if node.given else ()
    if axis is None or not shapes or any(len(s) < 2 for s in shapes):
        return None
    of_one = all(s[axis % len(s)] == 1 for s in shapes)
    several = max(shapes, key=lambda s: s[0])
    return several if of_one and several[0] > 1 else None


def largest_of_all(node: Node, axis: int | None) -> tuple[int, ...] | None:
    """The shape of a batch of outputs of which one single largest is taken."""
    if axis is not None or node.op != "argmax" or not node.given or _has_axis(node.args):
        return None
    shapes, results = node.given[0].shapes, node.result.shapes
    if not shapes or any(len(s) != 2 or s[0] < 2 or s[1] < 2 for s in shapes):
        return None
    return shapes[0] if results == ((),) else None


def equal_reals(node: Node, everything: Sequence[Node]) -> tuple[float, int] | None:
    """(share that is equal, number) of real outputs that are asked to equal real targets."""
    if node.op != "eq" or len(node.given) != 2 or set(node.roles) == {"output"}:
        return None
    if "output" not in node.roles:
        return None
    real = all(g.dtype.startswith("float") and g.num for g in node.given)
    guesses, target = node.given if node.roles[0] == "output" else node.given[::-1]
    if not real or not _is_broken(target) or not _is_broken(guesses):
        return None
    if any(m.op in _ROUNDS for m in made_by(everything, node)):
        return None
    # What is equal at all is compared with something like itself: an earlier answer, a copy.
    return (0.0, node.result.num) if node.result.mean == 0 else None


def asked_of_all(node: Node, everything: Sequence[Node], through: Sequence[str]) -> bool:
    """Whether all results of a comparison together answer one question (are these probabilities?),
    as assertions and the metrics of libraries ask it: no prediction.
    """
    together = ("mul", "logical_and", "logical_or", "bitwise_and", "bitwise_or")
    return any(n.op in ("all", "any") for n in consumers(everything, node, (*through, *together)))


def _largest(summary: Met) -> tuple[int, ...]:
    """The shape that came by here with the most values; none where ranks differ."""
    shapes = summary.shapes
    if not shapes or len({len(s) for s in shapes}) > 1:
        return ()
    return max(shapes)


def _counts_up(given: Sequence[Met], rows: int) -> bool:
    """One side is 0, 1, 2, ...: a table of classes or positions, compared with all on purpose."""
    return any((g.min, g.max) == (0, rows - 1) and 2 * g.mean == rows - 1 for g in given)


def _has_axis(args: Sequence[Any]) -> bool:
    return any(
        (isinstance(a, int) and not isinstance(a, bool))
        or (isinstance(a, str) and a.startswith(("dim=", "axis=")))
        for a in args
    )


def _is_broken(summary: Met) -> bool:
    """Its values are no whole numbers."""
    return summary.min % 1 != 0 or summary.max % 1 != 0
