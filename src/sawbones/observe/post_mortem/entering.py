"""Calls of the user's own functions: which code a call enters, with what in its arguments, and from
where a function was called that has returned since.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from torch import nn

from sawbones.observe.origins import built_at
from sawbones.observe.post_mortem.places import (
    FUNCTIONS,
    Giver,
    Picks,
    Place,
    argument_nodes,
    defaults,
)
from sawbones.observe.post_mortem.sources import Source, Sources, statements
from sawbones.observe.post_mortem.values import MISSING, Values, is_a, members_of
from sawbones.observe.sites import is_user_file

MOST_CALLERS = 2
_NEVER_BY_NAME = ("forward", "main", "__call__", "__getitem__", "__len__", "__iter__")
_PLAIN = (bool, int, float, str, types.NoneType)


class Entrances:
    """`frames`: the user's frames of the traceback, outermost first. `files`: the user's sources."""

    def __init__(
        self,
        sources: Sources,
        files: Callable[[], Iterator[Source]],
        frames: Sequence[types.TracebackType],
    ) -> None:
        self._sources, self._files, self._frames = sources, files, frames
        self._places: dict[int, Place] = {}

    # -- places

    def live(self, number: int) -> Place:
        """A frame of the traceback; its arguments lead to the frame that called it."""
        if number not in self._places:
            tb = self._frames[number]
            frame, code = tb.tb_frame, tb.tb_frame.f_code
            source = self._sources(code.co_filename)
            node = _function_node(source, code) or source.tree
            given: dict[str, Giver] = {}
            place = Place(source, node, frame.f_locals, frame.f_globals, tb.tb_lineno, given)
            self._places[number] = place
            call = self.node_of(number - 1) if number else None
            around = self.live(number - 1) if number else None
            if code.co_name.startswith("<") and around is not None and around.node is node:
                # a comprehension has a frame of its own, and the names of its function besides
                place.names = {**around.names, **frame.f_locals}
                place.given = around.given
            elif isinstance(call, ast.Call):
                self._bind(place, given, call, self.live(number - 1))
        return self._places[number]

    def node_of(self, number: int) -> ast.AST | None:
        """The expression that a frame was evaluating."""
        tb = self._frames[number]
        positions = tb.tb_frame.f_code.co_positions()
        at = next(islice(positions, tb.tb_lasti // 2, None), None)
        if at is None or None in at:
            return None
        line, end_line, begin, end = (int(number or 0) for number in at)
        source = self._sources(tb.tb_frame.f_code.co_filename)
        return source.node_at(line, end_line, begin, end)

    def static(self, function: Any, owner: object) -> Place | None:
        """A function that is not running, entered by nobody that is known."""
        code = function.__code__ if type(function) is types.FunctionType else None
        if code is None or not is_user_file(code.co_filename):
            return None
        source = self._sources(code.co_filename)
        node = _function_node(source, code)
        return self._of_node(source, node, function.__globals__, owner) if node else None

    def _of_node(self, source: Source, node: ast.AST, top: Any, owner: object = MISSING) -> Place:
        names: dict[str, Any] = {}
        given: dict[str, Giver] = {}
        place = Place(source, node, names, top, 0, given)
        if owner is not MISSING and place.own_name:
            names[place.own_name] = owner
        arguments = [a.arg for a in node.args.args] if isinstance(node, FUNCTIONS) else []
        for name in arguments:
            if name != place.own_name:
                given[name] = self._by_search(place, name, owner)
        for name, value in defaults(node):
            known = Values({}, top)(value)
            held = _kept_as(place, name, owner)
            if held is not MISSING or known is not MISSING:
                names[name] = held if held is not MISSING else known
        return place

    def around(self, source: Source, node: ast.AST, top: Any) -> Place:
        """The function that a node stands in: the running one, or one that has returned."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, FUNCTIONS):
            current = source.parents.get(id(current))
        for number in range(len(self._frames)):
            place = self.live(number)
            if place.node is (current or source.tree) and place.source is source:
                return place
        if current is None:
            return Place(source, source.tree, top, top)
        return self._of_node(source, current, top)

    # -- calls

    def is_users(self, called: object) -> bool:
        if is_a(called, type):
            return any(True for _ in user_functions(called))  # type: ignore[arg-type]
        return self._code(called, MISSING) is not None

    def entered(self, call: ast.Call, caller: Place) -> Place | None:
        """The function of the user's that a call runs, with what it is given."""
        owner: object = MISSING
        if isinstance(call.func, ast.Attribute):
            owner = caller.value(call.func.value)
        code = self._code(caller.value(call.func), owner)
        place = self.static(*code) if code is not None else self._written(call, caller)
        if place is not None and isinstance(place.given, dict):
            self._bind(place, place.given, call, caller)
        return place

    def _code(self, called: object, owner: object) -> tuple[Any, object] | None:
        if type(called) is types.FunctionType:
            users = is_user_file(called.__code__.co_filename)
            return (called, owner) if users else None
        if called is MISSING or is_a(called, type, types.ModuleType):
            return None
        names = ("forward",) if is_a(called, nn.Module) else ("__call__",)
        return next(((f, called) for f in user_functions(type(called), names)), None)

    def _written(self, call: ast.Call, caller: Place) -> Place | None:
        """A function inside of the function, or a method of an object that is gone."""
        scope: ast.AST | None = None
        name = ""
        if isinstance(call.func, ast.Name):
            scope, name = caller.node, call.func.id
        elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            own = call.func.value.id == caller.own_name
            scope, name = (caller.class_node if own else None), call.func.attr
        for node in getattr(scope, "body", ()):
            if isinstance(node, FUNCTIONS) and node.name == name:
                return self._of_node(caller.source, node, caller.top)
        return None

    def collating(self, collate: object, dataset: object) -> Place | None:
        """A collate function of the user's, whose argument are samples of the data set."""
        code = self._code(collate, MISSING) if collate is not None else None
        place = self.static(*code) if code is not None else None
        if place is None or not isinstance(place.given, dict):
            return None
        for name in list(place.given)[:1]:
            place.given[name] = lambda follower, picks, parent: follower.sample(
                dataset, picks[1:], parent
            )
        return place

    def methods(self, owner: object, place: Place | None) -> Iterator[Place]:
        """The methods that may set an attribute, the constructor first."""
        if owner is not MISSING:
            for function in user_functions(type(owner)):
                found = self.static(function, owner)
                if found is not None and found.own_name:
                    yield found
        elif place is not None and place.class_node is not None:
            nodes = [n for n in place.class_node.body if isinstance(n, FUNCTIONS)]
            for node in sorted(nodes, key=lambda n: n.name != "__init__"):
                yield self._of_node(place.source, node, place.top)

    # -- arguments

    def _bind(self, place: Place, given: dict[str, Giver], call: ast.Call, caller: Place) -> None:
        names = place.names if isinstance(place.names, dict) else {}
        passed = list(argument_nodes(place.node, call, bool(place.own_name)))
        unset = dict(defaults(place.node))
        for name in [n for n in given if n not in {p[0] for p in passed}]:
            del given[name]
            if name in unset:
                given[name] = _giver(unset[name], place, (), "default")
        for name, node, extra in passed:
            known = caller.value(node) if not extra else MISSING
            if known is not MISSING:
                names.setdefault(name, known) if place.line else names.update({name: known})
            elif not place.line:
                names.pop(name, None)
            given[name] = _giver(node, caller, extra)

    def _by_search(self, place: Place, name: str, owner: object) -> Giver:
        def give(follower: Any, picks: Picks, parent: int) -> None:
            for call, caller in islice(self.callers(place, owner), MOST_CALLERS):
                for passed, node, extra in argument_nodes(place.node, call, bool(place.own_name)):
                    if passed == name:
                        _giver(node, caller, extra)(follower, picks, parent)

        return give

    def callers(self, place: Place, owner: object = MISSING) -> Iterator[tuple[ast.Call, Place]]:
        """Calls by the name of a function or class, the last before the failing line first. Those
        of a constructor must fit what its object holds.
        """
        made = place.function == "__init__" and place.class_node is not None
        name = place.class_node.name if made and place.class_node else place.function
        if name in _NEVER_BY_NAME:
            return
        site = built_at(owner) if is_a(owner, nn.Module) else None  # type: ignore[arg-type]
        found = []
        for source in self._files():
            top = place.top if source is place.source else self._globals(source)
            for call in source.calls_of(name):
                caller = self.around(source, call, top)
                late = bool(caller.line) and call.lineno > caller.line
                elsewhere = site is not None and (
                    source.shown != site.file
                    or not call.lineno <= site.line <= (call.end_lineno or 0)
                )
                if not late and not elsewhere and _fits(place, call, caller, owner):
                    found.append((bool(caller.line), call.lineno, call, caller))
        for _, _, call, caller in sorted(found, key=lambda row: row[:2], reverse=True):
            yield call, caller

    def _globals(self, source: Source) -> Any:
        known = [tb.tb_frame for tb in self._frames]
        own = [f.f_globals for f in known if self._sources(f.f_code.co_filename) is source]
        return own[0] if own else {}


def _giver(node: ast.expr, caller: Place, extra: Picks, how: str = "given") -> Giver:
    def give(follower: Any, picks: Picks, parent: int) -> None:
        at = follower.emit(node, caller, how, parent)
        follower.follow(node, caller, (*extra, *picks), at)

    return give


def user_functions(cls: type, names: Sequence[str] = ()) -> Iterator[types.FunctionType]:
    """Methods in files of the user's, the constructor first; `names`: only these."""
    found = [
        function
        for base in cls.__mro__
        for name, function in vars(base).items()
        if type(function) is types.FunctionType
        and (not names or name in names)
        and is_user_file(function.__code__.co_filename)
    ]
    yield from sorted(found, key=lambda function: function.__name__ != "__init__")


def _function_node(source: Source, code: types.CodeType) -> ast.AST | None:
    """The definition of a function; of a comprehension the function around it."""
    best: ast.AST | None = None
    for node in ast.walk(source.tree):
        if not isinstance(node, FUNCTIONS):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        if first == code.co_firstlineno and node.name == code.co_name:
            return node
        inside = first <= code.co_firstlineno <= (node.end_lineno or 0)
        best = node if code.co_name.startswith("<") and inside else best
    return best if code.co_name != "<module>" else None


def _kept_as(place: Place, name: str, owner: object) -> Any:
    """The value of an argument that the constructor keeps under an attribute."""
    held = members_of(owner)
    if place.function != "__init__" or not held:
        return MISSING
    for node, _ in statements(place.node):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
            continue
        for target in node.targets:
            kept = isinstance(target, ast.Attribute) and node.value.id == name
            if kept and isinstance(target, ast.Attribute) and target.attr in held:
                return held[target.attr]
    return MISSING


def _fits(place: Place, call: ast.Call, caller: Place, owner: object) -> bool:
    """Plain values that a constructor was given are those that its object keeps."""
    if owner is MISSING:
        return True
    given = {name: caller.value(node) for name, node, extra in _plainly(place, call) if not extra}
    unset = {name: place.value(node) for name, node in defaults(place.node) if name not in given}
    for name, value in (given | unset).items():
        held = _kept_as(place, name, owner)
        plain = type(value) in _PLAIN and type(held) in _PLAIN
        if plain and held != value:
            return False
    return True


def _plainly(place: Place, call: ast.Call) -> list[tuple[str, ast.expr, Picks]]:
    return list(argument_nodes(place.node, call, bool(place.own_name)))
