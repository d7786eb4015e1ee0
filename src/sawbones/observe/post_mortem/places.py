"""Functions of the user's as places that values pass through: who called them with what, which of
their lines gave a name its value, and which branch was taken where that is still known.
"""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sawbones.observe.post_mortem.sources import Source, dotted, statements
from sawbones.observe.post_mortem.values import MISSING, Values

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN = (bool, int, float, str, types.NoneType)
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}

Each = object()  # an element of something that is gone through, whichever it is
Picks = tuple[Any, ...]  # which part of a value is followed, outermost first
Giver = Callable[[Any, Picks, int], None]  # follower, part, the line that it feeds


@dataclass
class Place:
    """One function of the user's (or the top level of a file), entered by one call. `names`: what
    is known to be bound there. `line`: where it is left, 0 for its end. `given`: how to go on from
    an argument.
    """

    source: Source
    node: ast.AST
    names: Mapping[str, Any]
    top: Mapping[str, Any]
    line: int = 0
    given: Mapping[str, Giver] = field(default_factory=dict)

    @property
    def function(self) -> str:
        return self.node.name if isinstance(self.node, FUNCTIONS) else "<module>"

    @cached_property
    def value(self) -> Values:
        return Values(self.names, self.top)

    @cached_property
    def own_name(self) -> str:
        """What a method calls its object."""
        if not isinstance(self.node, FUNCTIONS) or self.class_node is None:
            return ""
        plain = any(dotted(d) == "staticmethod" for d in self.node.decorator_list)
        arguments = self.node.args.args
        return arguments[0].arg if arguments and not plain else ""

    @cached_property
    def class_node(self) -> ast.ClassDef | None:
        above = self.source.parents.get(id(self.node))
        return above if isinstance(above, ast.ClassDef) else None

    def definitions(self, name: str, use: ast.AST) -> list[tuple[ast.stmt, ast.expr, Picks]]:
        """Statements that may have given a name the value that it has at `use`, the last first, up
        to the first one that certainly ran.
        """
        line = getattr(use, "lineno", 0)
        known = [d for d in bindings(self.node, name) if self.may_run(d[0])]
        before = [d for d in known if _end_of(d) < line or _is_loop_over(d[0], use)]
        found: list[tuple[ast.stmt, ast.expr, Picks]] = []
        around = known[-1:] if name not in self.given else []  # of a loop, the turn before
        for made in reversed(before or around):
            found.append(made)
            added_to = isinstance(made[0], ast.AugAssign)
            if not added_to and not self._only_sometimes(made[0], use):
                break
        return found

    def _only_sometimes(self, statement: ast.stmt, use: ast.AST) -> bool:
        """It stands in a branch that `use` is not in, and the condition is not known."""
        for branch, inside in self._branches(statement):
            shared = any(b is branch and i == inside for b, i in self._branches(use))
            if not shared and truth(branch.test, self.value) is None:
                return True
        return False

    def _branches(self, node: ast.AST) -> Iterator[tuple[ast.If, bool]]:
        """Conditions around a node, with the side that it stands on."""
        current: ast.AST | None = node
        while current is not None and current is not self.node:
            above = self.source.parents.get(id(current))
            if isinstance(above, ast.If) and current is not above.test:
                yield above, any(current is inner for inner in above.body)
            current = above

    def may_run(self, node: ast.AST) -> bool:
        sides = [
            (truth(branch.test, self.value), inside) for branch, inside in self._branches(node)
        ]
        return all(known is None or known == inside for known, inside in sides)

    def returns(self) -> list[ast.Return]:
        """Those that may have been reached, the likeliest first: what stands at the end."""
        found: list[ast.Return] = []
        for node, _ in statements(self.node):
            if isinstance(node, ast.Return) and node.value is not None and self.may_run(node):
                found.insert(0, node)
                decided = [truth(branch.test, self.value) for branch, _ in self._branches(node)]
                if None not in decided:
                    break
        return found

    def yields(self) -> list[ast.Yield]:
        return [n for n in ast.walk(self.node) if isinstance(n, ast.Yield) and n.value is not None]


def truth(test: ast.expr, value: Values) -> bool | None:
    """A condition on plain values that are still bound; None where that cannot be known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(test.operand, value)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        sides = [truth(part, value) for part in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        compare = _COMPARED.get(type(test.ops[0]))
        pair = value(test.left), value(test.comparators[0])
        if compare is None or any(side is MISSING for side in pair) or type(pair[1]) not in _PLAIN:
            return None
        if type(pair[0]) not in _PLAIN:
            identity = isinstance(test.ops[0], (ast.Is, ast.IsNot))
            return bool(compare(*pair)) if identity else None
        try:
            return bool(compare(*pair))
        except TypeError:
            return None
    plain = value(test)
    return bool(plain) if plain is not MISSING and type(plain) in _PLAIN else None


def bindings(scope: ast.AST, name: str) -> Iterator[tuple[ast.stmt, ast.expr, Picks]]:
    """Statements of a scope that bind a name or attribute, with the expression that the value is
    taken from and the part of it.
    """
    sides: list[tuple[ast.expr, ast.expr, Picks]]
    for node, _ in statements(scope):
        if isinstance(node, ast.Assign):
            sides = [(target, node.value, ()) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            sides = [(node.target, node.value, ())]
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            sides = [(node.target, node.iter, (Each,))]
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            sides = [(i.optional_vars, i.context_expr, ()) for i in node.items if i.optional_vars]
        else:
            continue
        for target, value, picks in sides:
            for found in picked(target, name):
                yield node, *_paired(value, (*picks, *found))


def _paired(value: ast.expr, picks: Picks) -> tuple[ast.expr, Picks]:
    """x, y = a, b gives x its value from a and y from b."""
    while picks and isinstance(value, ast.Tuple) and type(picks[0]) is int:
        if not picks[0] < len(value.elts) or any(isinstance(e, ast.Starred) for e in value.elts):
            break
        value, picks = value.elts[picks[0]], picks[1:]
    return value, picks


def picked(target: ast.AST, name: str) -> Iterator[Picks]:
    """The way through a target to a name: (1,) for y in `x, y`."""
    if dotted(target) == name:
        yield ()
    elif isinstance(target, ast.Starred):
        yield from picked(target.value, name)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for number, part in enumerate(target.elts):
            yield from ((number, *rest) for rest in picked(part, name))


def _end_of(made: tuple[ast.stmt, ast.expr, Picks]) -> int:
    return made[1].end_lineno or made[1].lineno


def _is_loop_over(statement: ast.stmt, use: ast.AST) -> bool:
    """for x in rows: f(x), written on one line."""
    line = getattr(use, "lineno", 0)
    loop = isinstance(statement, (ast.For, ast.AsyncFor))
    return loop and statement.lineno <= line <= (statement.end_lineno or 0)


def argument_nodes(
    function: ast.AST, call: ast.Call, bound: bool
) -> Iterator[tuple[str, ast.expr, Picks]]:
    """(parameter, what it is given, the part of it). `bound`: the first one is the object."""
    if not isinstance(function, FUNCTIONS):
        return
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][bound:]
    place = 0
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            for number, name in enumerate(names[place:]):
                yield name, argument.value, (number,)
            break
        if place < len(names):
            yield names[place], argument, ()
            place += 1
    for word in call.keywords:
        if word.arg is not None:
            yield word.arg, word.value, ()


def defaults(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(function, FUNCTIONS):
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        given = function.args.defaults
        yield from zip(names[len(names) - len(given) :], given, strict=True)
        for argument, value in zip(
            function.args.kwonlyargs, function.args.kw_defaults, strict=True
        ):
            if value is not None:
                yield argument.arg, value
