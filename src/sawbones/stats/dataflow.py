"""What depends on what among the operators of one deep step, by the identity of the tensors that
they hand on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sawbones.schema import DeepStep, Op, TokenInput, Value

# Operators that only change the form of what they are given.
FORMING = frozenset(
    {
        "view",
        "reshape",
        "transpose",
        "permute",
        "t",
        "T",
        "mT",
        "contiguous",
        "squeeze",
        "unsqueeze",
        "flatten",
        "unflatten",
        "expand",
        "expand_as",
        "clone",
        "to",
        "float",
        "type_as",
        "movedim",
        "swapaxes",
        "swapdims",
        "view_as",
        "reshape_as",
        "chunk",
        "split",
        "unbind",
        "__getitem__",
        "dropout",
    }
)


class Flow:
    def __init__(self, deep: DeepStep, *, with_no_grad: bool = False) -> None:
        self.ops = [op for op in deep.ops if with_no_grad or not op.args.get("no_grad")]
        self._makers: dict[int, list[Op]] = {}
        for op in self.ops:
            for value in op.outputs:
                self._makers.setdefault(value.id, []).append(op)

    def maker(self, value: Value, before: int) -> Op | None:
        """The operator that last wrote a value before this place."""
        return next(
            (op for op in reversed(self._makers.get(value.id, ())) if op.index < before), None
        )

    def origin(
        self, value: Value, before: int, through: frozenset[str] = FORMING
    ) -> tuple[Value, Op | None]:
        """The value behind those that only change its form, and what made it (None: it came from
        outside of the step).
        """
        for _ in range(64):
            op = self.maker(value, before)
            if op is None or op.name not in through or not op.inputs:
                return value, op
            value, before = op.inputs[0], op.index
        return value, None

    def reached(self, seeds: Iterable[int]) -> set[int]:
        """Every value that depends on one of these."""
        found = set(seeds)
        for op in self.ops:
            if any(value.id in found for value in op.inputs):
                found.update(value.id for value in op.outputs)
        return found

    def behind(self, value: Value, before: int, limit: int = 400) -> Iterator[Op]:
        """The operators that a value comes from, nearest first."""
        waiting = [(value, before)]
        seen: set[int] = set()
        while waiting and len(seen) < limit:
            current, place = waiting.pop(0)
            op = self.maker(current, place)
            if op is None or op.index in seen:
                continue
            seen.add(op.index)
            yield op
            waiting += [(v, op.index) for v in op.inputs]

    def sources(self, value: Value, before: int) -> list[Value]:
        """The values from outside of the step that a value comes from."""
        found = {} if self.maker(value, before) is not None else {value.id: value}
        for op in self.behind(value, before):
            for given in op.inputs:
                if self.maker(given, op.index) is None:
                    found[given.id] = given
        return list(found.values())


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
    flow = Flow(deep)
    seeds: set[int] = set()
    for token in deep.tokens:
        op = lookup(deep, token) if token.role == "tokens" else None
        if op is not None:
            seeds.update(v.id for v in op.outputs)
    for item in deep.influence:
        if item.source.startswith("features:"):
            number = int(item.source.split(":")[1])
            for op in flow.ops:
                if op.index == number:
                    seeds.update(v.id for v in op.outputs)
                    # The features themselves may be used a second time, past the first learned
                    # layer.
                    seeds.update(
                        v.id
                        for v in op.inputs
                        if not v.requires_grad and flow.maker(v, op.index) is None
                    )
    return flow.reached(seeds)
