"""Readings of how the place of a token enters a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.schema import DeepStep, Op, Value
from sawbones.stats.sequences import main_call
from sawbones.trace.graph import StepGraph, data_values

ADDING = ("add", "add_", "sub")
REDUCING = frozenset({"mean", "sum", "amax", "amin", "max", "min", "median", "select"})


@dataclass(frozen=True)
class Added:
    """Something that is no data, added to data of the form (batch, time, features) or (time, batch,
    features).
    """

    op: Op
    data: Value
    code: Value
    time_dim: int

    @property
    def sizes(self) -> tuple[int, int]:
        """(along the batch, along time) of what is added, 1 where it is the same for all."""
        shape = (1,) * (3 - len(self.code.shape)) + self.code.shape
        return shape[1 - self.time_dim], shape[self.time_dim]


def time_dim_of(deep: DeepStep) -> int:
    for token in deep.tokens:
        if token.role == "tokens" and token.time_dim is not None:
            return token.time_dim
    layout = deep.probes.get("layout")
    return 0 if isinstance(layout, dict) and layout.get("batch_first") is False else 1


def _time_dim_in(data: Value, targets: tuple[int, ...], believed: int) -> int:
    """The dimension that the targets have as well holds the examples, and the other one is time,
    whatever the layers take it for; what they believe decides where targets have both or neither.
    """
    first, second = (size in targets for size in data.shape[:2])
    return believed if first == second else int(first)


def added_codes(deep: DeepStep) -> Iterator[Added]:
    """Vectors that are added to the data on their way into something learned and do not come from
    them, biases of single features aside.
    """
    data, graph = data_values(deep), StepGraph(deep)
    call = main_call(deep)
    targets = call.target.shape if call is not None and call.target is not None else ()
    believed = time_dim_of(deep)
    for op in deep.ops:
        if op.name not in ADDING or len(op.inputs) < 2 or op.args.get("no_grad"):
            continue
        first, second = op.inputs[:2]
        if first.id not in data and second.id in data:
            first, second = second, first
        fits = (
            len(first.shape) == 3
            and len(second.shape) <= 3
            and second.shape[-1:] == first.shape[-1:]
        )
        if (
            first.id in data
            and second.id not in data
            and fits
            and op.outputs
            and op.outputs[0].shape == first.shape
            and _goes_on_into_weights(graph, op)
        ):
            yield Added(op, first, second, _time_dim_in(first, targets, believed))


def _goes_on_into_weights(graph: StepGraph, op: Op) -> bool:
    """What is added behind the last weights compares answers with something, as a likelihood
    does.
    """
    return any(
        value.requires_grad and graph.maker(value, later.index) is None
        for later in graph.after(op.outputs)
        for value in later.inputs
    )


def comes_from_table(graph: StepGraph, added: Added, rows: int) -> Value | None:
    """The table of at least this many rows that a code was cut or reduced from."""
    for value in graph.sources(added.code, added.op.index):
        sizes = [n for n in value.shape[:-1] if n > 1]
        is_table = (
            value.dtype.startswith(("float", "bfloat"))
            and value.shape[-1:] == added.code.shape[-1:]
        )
        if is_table and len(sizes) == 1 and sizes[0] >= rows:
            return value
    return None
