"""Walking the operator trace: which operator made a value, through reshapes and slices, and what
lies behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sawbones.observe.deep.names import RESHAPING, SLICING
from sawbones.observe.deep.trace import RawOp, Ref


class OpGraph:
    def __init__(self, ops: list[RawOp]) -> None:
        self.ops = ops
        self._made: dict[int, list[int]] = {}
        self._used: dict[int, list[int]] = {}
        for position, op in enumerate(ops):
            for ref in op.outputs:
                if op.silent and ref.is_parameter:
                    # an optimizer's write: the parameter is where the model begins all the same
                    continue
                self._made.setdefault(ref.id, []).append(position)
            for ref in op.inputs:
                self._used.setdefault(ref.id, []).append(position)

    def producer(self, ref: Ref, before: int | None = None) -> RawOp | None:
        """The last operator that wrote this tensor, before the given position of the trace."""
        positions = self._made.get(ref.id, ())
        for position in reversed(positions):
            if before is None or position < before:
                return self.ops[position]
        return None

    def users(self, ref: Ref) -> list[RawOp]:
        return [self.ops[position] for position in self._used.get(ref.id, ())]

    def origin(
        self, ref: Ref, before: int | None = None, through: frozenset[str] = RESHAPING | SLICING
    ) -> tuple[Ref, RawOp | None]:
        """Back through operators that only hand values on: the value as it was made, and the
        operator that made it.
        """
        for _ in range(64):
            op = self.producer(ref, before)
            if op is None or op.name not in through or not op.inputs:
                return ref, op
            ref, before = op.inputs[0], op.index
        return ref, None

    def chain(
        self, ref: Ref, before: int | None = None, through: frozenset[str] = RESHAPING
    ) -> Iterator[Ref]:
        """The value and its forms before each reshape, nearest first."""
        yield ref
        for _ in range(64):
            op = self.producer(ref, before)
            if op is None or op.name not in through or not op.inputs:
                return
            ref, before = op.inputs[0], op.index
            yield ref

    def ancestors(
        self,
        ref: Ref,
        stop: Callable[[RawOp], bool] = lambda op: False,
        limit: int = 6000,
        before: int | None = None,
    ) -> list[RawOp]:
        """Every operator behind a value, nearest first; those at which `stop` is true are included
        but not passed.
        """
        found: dict[int, RawOp] = {}
        waiting = [(ref, before)]
        while waiting and len(found) < limit:
            current, position = waiting.pop()
            op = self.producer(current, position)
            if op is None or op.index in found:
                continue
            found[op.index] = op
            if not stop(op):
                waiting.extend((r, op.index) for r in op.inputs)
        return sorted(found.values(), key=lambda op: -op.index)

    def descendants(self, ref: Ref, limit: int = 6000) -> set[int]:
        """Indexes of the operators that depend on a value."""
        tainted, found = {ref.id}, set()
        for op in self.ops[:limit]:
            if any(r.id in tainted for r in op.inputs):
                found.add(op.index)
                tainted.update(r.id for r in op.outputs)
        return found
