"""From a value back to the lines that made it: through assignments, arguments, returns, attributes,
comprehensions, and from a batch into the data set that gave it. Read off the source, with what is
still bound to decide between branches and calls; nothing is called, and no name means anything.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset

from sawbones.observe.post_mortem.describing import Describer
from sawbones.observe.post_mortem.entering import Entrances, user_functions
from sawbones.observe.post_mortem.places import Each, Picks, Place, bindings, picked, truth
from sawbones.observe.post_mortem.sources import called_in, dotted, statements
from sawbones.observe.post_mortem.values import MISSING, is_a, members_of
from sawbones.schema.crash import Origin

MOST_LINES = 64
MOST_TURNS = 800
_LAST = ast.Pass(lineno=1 << 30)
# Calls that give the elements of their first argument, as they are.
_SAME = ("list", "tuple", "iter", "sorted", "reversed", "tqdm", "track", "cycle", "islice")
_OF_DATA = ("DataLoader", "Subset", "random_split", "train_test_split")
_SIDE_BY_SIDE = ("zip", "TensorDataset")
_CHANGING = ("append", "add", "update", "setdefault", "extend", "insert", "pop", "remove")


class Follower:
    """The lines of one value; made anew for each."""

    def __init__(self, entrances: Entrances, describe: Describer) -> None:
        self._entrances, self._describe = entrances, describe
        self.lines: list[Origin] = []
        self._on_the_way: set[tuple[object, ...]] = set()
        self._turns = 0

    def follow(self, node: ast.AST, place: Place, picks: Picks = (), parent: int = -1) -> None:
        key = (id(node), id(place.node), picks, place.names.get(place.own_name) is None)
        self._turns += 1
        if key in self._on_the_way or self._turns > MOST_TURNS or len(self.lines) >= MOST_LINES:
            return
        self._on_the_way.add(key)
        try:
            self._turn(node, place, picks, parent)
        finally:
            self._on_the_way.discard(key)

    def _turn(self, node: ast.AST, place: Place, picks: Picks, parent: int) -> None:
        named = picks and isinstance(node, (ast.Name, ast.Attribute))
        if named and self._into_data(place.value(node), picks, parent):
            picks = ()  # what is left to find is the line that made the loader or data set
        by_kind: dict[type[ast.AST], Callable[..., None]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.IfExp: self._choice,
        }
        handler = by_kind.get(type(node))
        if handler is not None:
            handler(node, place, picks, parent)
            return
        for part, rest in _parts(node, picks):
            self.follow(part, place, rest, parent)

    def emit(
        self, node: ast.AST, place: Place, how: str, parent: int, known: object = MISSING
    ) -> int:
        """A line of the trace; its place, for those that feed it."""
        known = place.value(node) if known is MISSING else known
        bound = self._describe(known, 0) if known is not MISSING else None
        origin = Origin(
            place.source.site(getattr(node, "lineno", 0), place.function),
            place.source.segment(node),
            how,
            parent,
            tuple(dict.fromkeys(called_in(node))),
            tuple(_numbers(node)),
            tuple(self._made_of(node, place)),
            bound.dtype if bound is not None else "",
            bound.shape if bound is not None else (),
            bound.value if bound is not None else None,
        )
        self.lines.append(origin)
        return len(self.lines) - 1

    def _made_of(self, node: ast.AST, place: Place) -> Iterator[str]:
        inner = list(_giving(node))
        if not any(isinstance(n, (ast.Name, ast.Attribute)) for n in inner):
            yield "literal"
        if any(isinstance(n, ast.Slice) and (n.lower or n.upper) for n in ast.walk(node)):
            yield "slice"
        if any(isinstance(n, (ast.BinOp, ast.UnaryOp, ast.Compare)) for n in inner):
            yield "operator"
        calls = [n for n in inner if isinstance(n, ast.Call)]
        if calls:
            yield "call"
        if any(self._entrances.is_users(place.value(call.func)) for call in calls):
            yield "user"

    # -- names and attributes

    def _name(self, node: ast.Name, place: Place, picks: Picks, parent: int) -> None:
        inside = _comprehension(node, place)
        if inside is not None:
            self.follow(inside[0], place, (*inside[1], *picks), parent)
            return
        made = place.definitions(node.id, node)
        if made or node.id in place.given:
            self._bound(node, made, place, picks, parent)
        elif place.function != "<module>":
            top = Place(place.source, place.source.tree, place.top, place.top)
            self._bound(node, top.definitions(node.id, _LAST), top, picks, parent)

    def _bound(self, node: ast.Name, made: Any, place: Place, picks: Picks, parent: int) -> None:
        self._added(node.id, place, picks, parent)
        self._changed_later(node, place, parent)
        for statement, value, extra in made:
            loop = isinstance(statement, (ast.For, ast.AsyncFor))
            known = place.value(node)
            at = self.emit(value, place, "loop" if loop else "assign", parent, known)
            self.follow(value, place, (*extra, *picks), at)
        if node.id in place.given and (not made or isinstance(made[-1][0], ast.AugAssign)):
            place.given[node.id](self, picks, parent)

    def _added(self, name: str, place: Place, picks: Picks, parent: int) -> None:
        """rows.append(value): where the elements of a list come from."""
        for statement, _ in statements(place.node):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            added = call.func.attr in ("append", "extend") and len(call.args) == 1
            if added and dotted(call.func.value) == name and place.may_run(statement):
                at = self.emit(call.args[0], place, "append", parent)
                self.follow(call.args[0], place, picks[1:], at)

    def _changed_later(self, node: ast.Name, place: Place, parent: int) -> None:
        """words.add(more), below the line that has used words already."""
        for statement, _ in statements(place.node):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if statement.lineno <= node.lineno or not isinstance(call, ast.Call):
                continue
            if place.line and statement.lineno > place.line:
                continue
            if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == node.id:
                method = place.value(call.func)
                own = self._entrances.is_users(method) and _sets_own(self._entrances, method)
                if own or (call.func.attr in _CHANGING and not self._entrances.is_users(method)):
                    self.emit(call, place, "changed", parent)

    def _attribute(self, node: ast.Attribute, place: Place, picks: Picks, parent: int) -> None:
        owner = place.value(node.value)
        if is_a(owner, types.ModuleType):
            return
        own = isinstance(node.value, ast.Name) and node.value.id == place.own_name
        holders = list(self._entrances.methods(owner, place if own else None))
        found = False
        for method in holders:
            name = f"{method.own_name}.{node.attr}"
            known = place.value(node)
            for statement, value, extra in bindings(method.node, name):
                if method.may_run(statement):
                    found = True
                    self._added(name, method, picks, parent)
                    at = self.emit(value, method, "assign", parent, known)
                    self.follow(value, method, (*extra, *picks), at)
        if not found:
            self.follow(node.value, place, (), parent)

    # -- parts, calls and choices

    def _subscript(self, node: ast.Subscript, place: Place, picks: Picks, parent: int) -> None:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else Each
        many = isinstance(node.slice, (ast.Tuple, ast.Slice))
        self.follow(node.value, place, picks if many else (key, *picks), parent)

    def _choice(self, node: ast.IfExp, place: Place, picks: Picks, parent: int) -> None:
        taken = truth(node.test, place.value)
        for side, chosen in ((node.body, True), (node.orelse, False)):
            if taken is None or taken == chosen:
                self.follow(side, place, picks, parent)

    def _call(self, node: ast.Call, place: Place, picks: Picks, parent: int) -> None:
        entered = self._entrances.entered(node, place)
        if entered is not None and self._returned(entered, picks, parent):
            return
        made = place.value(node.func)
        data = made if picks and is_a(made, type) else None
        if data is not None and self._sample_of(data, MISSING, picks[1:], parent):
            picks = ()
        name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        first = node.args[0] if node.args else None
        if first is not None and name == "enumerate" and picks[1:2] == (1,):
            self.follow(first, place, (Each, *picks[2:]), parent)
        elif name in _SIDE_BY_SIDE and len(picks) > 1 and type(picks[1]) is int:
            self._one_of(node.args, place, (picks[1], Each, *picks[2:]), parent)
        elif first is not None and name == "next":
            self.follow(first, place, (Each, *picks), parent)
        elif first is not None and picks and name in (*_SAME, *_OF_DATA):
            self.follow(first, place, picks, parent)
        else:
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            for part in (*receiver, *node.args, *(word.value for word in node.keywords)):
                self.follow(part, place, (), parent)

    def _one_of(self, nodes: list[ast.expr], place: Place, picks: Picks, parent: int) -> None:
        if picks[0] < len(nodes):
            self.follow(nodes[picks[0]], place, picks[1:], parent)

    def _returned(self, entered: Place, picks: Picks, parent: int) -> bool:
        """What a function of the user's gives back."""
        for statement in entered.returns():
            assert statement.value is not None
            for value, rest in _narrowed(statement.value, picks):
                at = self.emit(value, entered, "return", parent)
                self.follow(value, entered, rest, at)
        for given in entered.yields() if picks else ():
            assert given.value is not None
            for value, rest in _narrowed(given.value, picks[1:]):
                self.follow(value, entered, rest, self.emit(value, entered, "return", parent))
        return bool(entered.returns() or entered.yields())

    # -- data

    def _into_data(self, value: object, picks: Picks, parent: int) -> bool:
        if is_a(value, DataLoader):
            held = members_of(value)
            return self._batch(held.get("dataset"), held.get("collate_fn"), picks[1:], parent)
        if is_a(value, torch.Tensor, nn.Module):
            return False
        return self.sample(value, picks[1:], parent)

    def _batch(self, dataset: object, collate: object, picks: Picks, parent: int) -> bool:
        entered = self._entrances.collating(collate, dataset)
        if entered is not None and self._returned(entered, picks, parent):
            return True
        return self.sample(dataset, picks, parent)

    def sample(self, dataset: object, picks: Picks, parent: int = -1) -> bool:
        while is_a(dataset, Subset):
            dataset = members_of(dataset).get("dataset")
        return self._sample_of(type(dataset), dataset, picks, parent)

    def _sample_of(self, cls: type, dataset: object, picks: Picks, parent: int) -> bool:
        for function in user_functions(cls, ("__getitem__", "__iter__")):
            entered = self._entrances.static(function, dataset)
            return entered is not None and self._returned(entered, picks, parent)
        return False


def _parts(node: ast.AST, picks: Picks) -> Iterator[tuple[ast.AST, Picks]]:
    """The expressions that a value is made of."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        yield node.elt, picks[1:]
    elif isinstance(node, ast.DictComp):
        yield node.value, picks[1:]
    elif isinstance(node, (ast.Tuple, ast.List, ast.Dict)):
        narrowed = list(_narrowed(node, picks))
        if narrowed[0][0] is not node:
            yield from narrowed
            return
        inner = node.values if isinstance(node, ast.Dict) else node.elts
        yield from ((part, picks[1:]) for part in inner)
    elif not isinstance(node, (ast.Lambda, ast.Constant)):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield part, picks if isinstance(node, (ast.Starred, ast.BinOp)) else ()


def _giving(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a value comes out of: not conditions, and not the numbers of elements."""
    yield node
    left_out = [
        node.test if isinstance(node, ast.IfExp) else None,
        node.slice if isinstance(node, ast.Subscript) else None,
        *(node.ifs if isinstance(node, ast.comprehension) else ()),
    ]
    for inner in ast.iter_child_nodes(node):
        if not any(inner is other for other in left_out):
            yield from _giving(inner)


def _narrowed(node: ast.expr, picks: Picks) -> Iterator[tuple[ast.expr, Picks]]:
    """The part of a tuple or dictionary that is written out."""
    key = picks[0] if picks else Each
    if isinstance(node, (ast.Tuple, ast.List)) and type(key) is int and -1 <= key < len(node.elts):
        yield from _narrowed(node.elts[key], picks[1:])
    elif isinstance(node, ast.Dict) and type(key) is str:
        found = [
            value
            for name, value in zip(node.keys, node.values, strict=True)
            if isinstance(name, ast.Constant) and name.value == key
        ]
        for value in found[:1]:
            yield from _narrowed(value, picks[1:])
        if not found:
            yield node, picks
    else:
        yield node, picks


def _comprehension(node: ast.Name, place: Place) -> tuple[ast.expr, Picks] | None:
    """What a name of a comprehension goes over, and the part of it."""
    current: ast.AST | None = place.source.parents.get(id(node))
    while current is not None and current is not place.node:
        for generator in getattr(current, "generators", ()):
            for way in picked(generator.target, node.id):
                return generator.iter, (Each, *way)
        current = place.source.parents.get(id(current))
    return None


def _numbers(node: ast.AST) -> Iterator[float]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            yield float(inner.value)  # type: ignore[arg-type]


def _sets_own(entrances: Entrances, method: Any) -> bool:
    """A method that changes what its object holds."""
    place = entrances.static(method, MISSING)
    if place is None or not place.own_name:
        return False
    for node in ast.walk(place.node):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign):
            targets = [node.target]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            targets = [node.func.value] if node.func.attr in _CHANGING else []
        owners = [t.value if isinstance(t, ast.Subscript) else t for t in targets]
        if any(dotted(owner).startswith(f"{place.own_name}.") for owner in owners):
            return True
    return False
