"""Readings of the losses of deep steps: which call carries the step, what made its input, where it
can be changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sawbones.schema import DeepStep, LossCall, Op, Run, Site, Value
from sawbones.schema.loss import LossFacts
from sawbones.schema.source import as_site as as_site
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.operators import PASSING

# Layers that a model reads numbers with.
_READING = frozenset(
    {
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "gru",
        "lstm",
        "rnn_tanh",
        "rnn_relu",
        "matmul",
        "layer_norm",
    }
)


@dataclass(frozen=True)
class Seen:
    """A loss call together with the deep step that it belongs to."""

    deep: DeepStep
    call: LossCall

    @property
    def facts(self) -> LossFacts:
        return self.call.facts

    @property
    def built(self) -> Site | None:
        return self.facts.built_at

    def number(self, name: str) -> float:
        value = getattr(self.facts, name)
        return float(value) if isinstance(value, (int, float)) else math.nan

    @property
    def is_finite(self) -> bool:
        """Once NaN has come up, nothing can be told from the values."""
        value = self.call.value
        return self.call.input.nonfinite == 0 and (value is None or math.isfinite(value))

    def maker(self, of: Op | None = None) -> Op | None:
        """What made the scores, or the first input of another operator, seen through those that
        only hand values on.
        """
        value, before = (of.inputs[0], of.index) if of else (self.call.input, self.call.op)
        return StepGraph(self.deep, with_no_grad=True).origin(value, before, PASSING)[1]


def reaching(run: Run) -> Iterator[Seen]:
    """Losses that the backward of their step starts from or comes through."""
    for deep in run.deep:
        for call in deep.losses:
            if call.facts.reaches_root is not False:
                yield Seen(deep, call)


def carrying(run: Run) -> list[Seen]:
    """The main loss of every deep step."""
    return [seen for seen in reaching(run) if seen.facts.main]


def user_sites(
    deep: DeepStep, names: frozenset[str], value: Value | None, before: int
) -> list[Site]:
    """Sites of the operators of these names on the way to a value, nearest first."""
    if value is None:
        return []
    fixed = StepGraph(deep, with_no_grad=True).behind(
        value, before, 200, lambda op: (v for v in op.inputs if not v.requires_grad)
    )
    return list(locate(*(op for op in fixed if op.name in names)))


def given_numbers(seen: Seen) -> bool:
    """A sequence or image of numbers goes into the model beside the tokens, one for each example of
    the batch.
    """
    tokens = [t for t in seen.deep.tokens if t.role == "tokens" and len(t.shape) == 2]
    examples = {t.shape[1 if t.time_dim == 0 else 0] for t in tokens} - {1}
    for op in seen.deep.ops:
        if (
            not op.module
            or op.name not in _READING
            or op.index > seen.call.op
            or op.args.get("no_grad")
        ):
            continue
        for value in op.inputs:
            real = (
                value.dtype.startswith(("float", "bfloat"))
                and not value.requires_grad
                and not value.nonfinite
            )
            # Numbers between 0 and 1 may be a mask; one row for all examples is a table of
            # positions.
            spread = (
                value.min is not None
                and value.max is not None
                and not (value.min >= 0 and value.max <= 1)
            )
            if real and spread and len(value.shape) >= 3 and examples & set(value.shape[:2]):
                return True
    return False
