"""The operators of a step as a graph: what made a value, what lies behind it, what depends on it.

Tensors are known by number, and one may be written several times: who made it depends on the place
that asks. The graph is the same for the operators of a running step and for those of a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from sawbones.schema import DeepStep, Influence, Op, TokenInput, Value
from sawbones.trace.operators import FORMING, PASSING

_LONGEST_WAY = 64


class Numbered(Protocol):
    """A tensor as one operator saw it."""

    @property
    def id(self) -> int: ...


class Operator(Protocol):
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def outputs(self) -> Sequence[Any]: ...


OpT = TypeVar("OpT", bound=Operator)
ValueT = TypeVar("ValueT", bound=Numbered)


class Graph(Generic[OpT, ValueT]):
    handing_on = PASSING

    def __init__(
        self, ops: Iterable[OpT], writes: Callable[[OpT, ValueT], bool] = lambda op, value: True
    ) -> None:
        """`writes` is false for an output that is not to count as made here."""
        self.ops = list(ops)
        self._makers: dict[int, list[OpT]] = {}
        self._users: dict[int, list[OpT]] = {}
        for op in self.ops:
            for value in op.outputs:
                if writes(op, value):
                    self._makers.setdefault(value.id, []).append(op)
            for value in op.inputs:
                self._users.setdefault(value.id, []).append(op)

    def maker(self, value: ValueT, before: int | None = None) -> OpT | None:
        """The operator that last wrote a value before this place."""
        return next(reversed(self.writers(value, before)), None)

    def writers(self, value: ValueT, before: int | None = None) -> Sequence[OpT]:
        """All operators that wrote a value before this place, in order."""
        made = self._makers.get(value.id, ())
        return made if before is None else [op for op in made if op.index < before]

    def at(self, index: int) -> OpT | None:
        return next((op for op in self.ops if op.index == index), None)

    def users(self, value: ValueT) -> Sequence[OpT]:
        return self._users.get(value.id, ())

    def way(
        self,
        value: ValueT,
        before: int | None = None,
        through: frozenset[str] | None = None,
        follow: Callable[[OpT], ValueT | None] = lambda op: next(iter(op.inputs), None),
    ) -> Iterator[tuple[ValueT, OpT | None]]:
        """One way back: the value with its maker, then that maker's first input with its own, and
        so on, through operators of these names only. `follow` names another input than the first.
        """
        for _ in range(_LONGEST_WAY):
            op = self.maker(value, before)
            yield value, op
            given = follow(op) if op is not None else None
            if op is None or given is None or (through is not None and op.name not in through):
                return
            value, before = given, op.index

    def origin(
        self, value: ValueT, before: int | None = None, through: frozenset[str] | None = None
    ) -> tuple[ValueT, OpT | None]:
        """The value behind those that only hand it on, and what made it (None: it came from
        outside of the step).
        """
        *_, (value, op) = self.way(value, before, through or self.handing_on)
        return value, op

    def behind(
        self,
        value: ValueT,
        before: int | None = None,
        limit: int = 6000,
        follow: Callable[[OpT], Iterable[ValueT]] = lambda op: op.inputs,
    ) -> Iterator[OpT]:
        """The operators that a value comes from, nearest first; `follow` says which of their inputs
        are gone on with.
        """
        waiting = [(value, before)]
        seen: set[int] = set()
        for current, place in waiting:
            op = self.maker(current, place)
            if op is None or op.index in seen:
                continue
            seen.add(op.index)
            yield op
            if len(seen) >= limit:
                return
            waiting += [(given, op.index) for given in follow(op)]

    def sources(self, value: ValueT, before: int | None = None) -> list[ValueT]:
        """The values from outside of the step that a value comes from."""
        if self.maker(value, before) is None:
            return [value]
        given = ((v, op) for op in self.behind(value, before) for v in op.inputs)
        return list({v.id: v for v, op in given if self.maker(v, op.index) is None}.values())

    def after(self, values: Iterable[ValueT]) -> Iterator[OpT]:
        """The operators that depend on one of these values, in order."""
        reached = {value.id for value in values}
        for op in self.ops:
            if any(value.id in reached for value in op.inputs):
                reached.update(value.id for value in op.outputs)
                yield op

    def reached(self, values: Iterable[ValueT]) -> set[int]:
        """The numbers of all values that depend on one of these, and their own."""
        seeds = list(values)
        made = (value.id for op in self.after(seeds) for value in op.outputs)
        return {value.id for value in seeds}.union(made)


class StepGraph(Graph[Op, Value]):
    """Of a recorded deep step; as a rule without what ran under no_grad."""

    handing_on = FORMING

    def __init__(self, deep: DeepStep, *, with_no_grad: bool = False) -> None:
        super().__init__(op for op in deep.ops if with_no_grad or not op.args.get("no_grad"))


def first_features(deep: DeepStep, item: Influence) -> Op | None:
    """The operator that made the learned features which an influence was measured from."""
    kind, _, number = item.source.partition(":")
    return StepGraph(deep).at(int(number)) if kind == "features" else None


def lookup(deep: DeepStep, token: TokenInput) -> Op | None:
    """The operator that turned these ids into vectors."""
    shape = (*token.shape, token.dim)
    for op in deep.ops:
        looks_up = op.name in ("embedding", "__getitem__", "index_select") and op.site == token.site
        if looks_up and op.outputs and op.outputs[0].shape == shape:
            return op
    return None


def data_values(deep: DeepStep) -> set[int]:
    """Everything that depends on what the step was given: token vectors, or the first learned
    features.
    """
    graph = StepGraph(deep)
    seeds: list[Value] = []
    for token in deep.tokens:
        op = lookup(deep, token) if token.role == "tokens" else None
        seeds += op.outputs if op is not None else ()
    for op in filter(None, (first_features(deep, item) for item in deep.influence)):
        # The features themselves may be used a second time, past the first learned layer.
        own = (v for v in op.inputs if not v.requires_grad and graph.maker(v, op.index) is None)
        seeds += (*op.outputs, *own)
    return graph.reached(seeds)
