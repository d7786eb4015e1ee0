"""Readings of how a run failed: the operator that raised, or the first one that made a value that
is not finite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sawbones.schema import DeepStep, Op, Run, Site
from sawbones.schema.one_off import ValueRange
from sawbones.stats.loss_calls import as_site
from sawbones.trace.graph import StepGraph

_SIZES = re.compile(
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at "
    r"non-singleton dimension (\d+)"
)


MOST_NAMED = 8  # samples


@dataclass(frozen=True)
class Failure:
    """An exception inside of an operator, with what the operator was given."""

    op: str
    message: str
    site: Site | None
    inputs: tuple[Mapping[str, Any], ...]
    args: Mapping[str, Any]
    last: tuple[Mapping[str, Any], ...]  # operators before it, oldest first
    phase: str
    step: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(value.get("shape") or ()) for value in self.inputs)

    @property
    def sizes(self) -> tuple[int, int] | None:
        found = _SIZES.search(self.message)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def along_features(self) -> bool:
        """The sizes differ along the last axis, which holds features, not positions."""
        found = _SIZES.search(self.message)
        axes = max((len(shape) for shape in self.shapes), default=0)
        return found is not None and axes > 1 and int(found[3]) == axes - 1


def failure(run: Run) -> Failure | None:
    raw = run.ending.failing
    if run.ending.kind != "exception" or not isinstance(raw, Mapping) or not raw.get("op"):
        return None
    batch = run.ending.batch or {}
    return Failure(
        str(raw["op"]),
        str(run.ending.message or raw.get("error") or ""),
        as_site(raw.get("site")) or run.ending.site,
        tuple(raw.get("inputs") or ()),
        raw.get("args") or {},
        tuple(raw.get("last") or ()),
        str(batch.get("phase", "")),
        int(batch.get("step", run.num_steps)),
    )


def samples_text(run: Run, tensor: Mapping[str, Any], rows: Sequence[int]) -> str:
    """ "samples [2] of the batch (row 137 of the data set, a Rows)": by the numbers that the sampler
    gave, where the batch has one sample for each.
    """
    text = f"samples {list(rows[:MOST_NAMED])} of the batch"
    batch = run.ending.batch or {}
    numbers = batch.get("rows") or ()
    if len(numbers) != (tensor.get("shape") or [0])[0] or not rows:
        return text
    own = [str(numbers[row]) for row in rows[:MOST_NAMED]]
    named = f", a {batch['dataset']}" if batch.get("dataset") else ""
    return f"{text} (row{'s' * (len(own) > 1)} {', '.join(own)} of the data set{named})"


def user_frames(run: Run) -> list[Site]:
    """The user's own frames of the traceback, innermost first."""
    return [
        site
        for site in reversed(run.ending.traceback)
        if not site.file.startswith("/") and not site.file.startswith("<")
    ]


_MEMORY_ERRORS = ("OutOfMemoryError", "MemoryError", "_ArrayMemoryError")
_MEMORY_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "unable to allocate",
    "defaultcpuallocator",
)


def ran_out_of_memory(run: Run) -> bool:
    """The exception that ended the run is a refused allocation."""
    said = (run.ending.message or "").lower()
    return run.ending.kind == "exception" and (
        run.ending.exception in _MEMORY_ERRORS or any(sign in said for sign in _MEMORY_SIGNS)
    )


@dataclass(frozen=True)
class Birth:
    """Where the first value that is not finite came from."""

    step: int
    op: str
    site: Site | None
    inputs: tuple[ValueRange, ...]
    reason: str
    phase: str = "forward"


def spoiling(run: Run) -> Iterator[tuple[DeepStep, Mapping[str, Any]]]:
    """Deep steps with a non-finite value that is not known to have been harmless: where the loss
    and all gradients of the step are finite, it was left out again, as infinities in a minimum are.
    """
    for deep in run.deep:
        rows = run.steps["step"] == deep.step if "step" in run.steps else np.zeros(0, bool)
        harmless = rows.any() and all(
            np.isfinite(run.steps[column][rows]).all() for column in ("loss", "grad_norm")
        )
        if deep.first_nonfinite and not harmless:
            yield deep, deep.first_nonfinite


def first_nonfinite(run: Run) -> Birth | None:
    """The earliest record of a non-finite value; deep steps say more and win a tie."""
    found = []
    for deep, raw in spoiling(run):
        given = (
            deep.step,
            str(raw.get("name", "")),
            as_site(raw.get("site")),
            tuple(_value_range(value) for value in raw.get("inputs") or ()),
        )
        birth = Birth(*given, str(raw.get("reason", "")), str(raw.get("phase", "forward")))
        found.append((deep.step, 0, birth))
    if (first := run.nonfinite) is not None:
        birth = Birth(first.step, first.op, first.site, first.inputs, "")
        found.append((first.step, 1, birth))
    return min(found, key=lambda item: item[:2])[2] if found else None


def _value_range(value: Mapping[str, Any]) -> ValueRange:
    return ValueRange(
        tuple(value["shape"]),
        value["dtype"],
        value.get("min"),
        value.get("max"),
        value.get("nonfinite") or 0,
        is_parameter=bool(value.get("is_parameter")),
    )


def spoiled_before(birth: Birth) -> bool:
    """The weights themselves were not finite any more: the update before that is where it
    happened.
    """
    if birth.reason == "weights already non-finite":
        return True
    if birth.op not in (
        "embedding",
        "linear",
        "conv1d",
        "conv2d",
        "addmm",
        "matmul",
        "layer_norm",
        "lstm",
        "gru",
    ):
        return False
    return any(value.nonfinite for value in birth.inputs)


NO_GUARD = 1e-20
DIVISIONS = ("div", "div_")
LARGEST = ("max", "amax")
SPREADS = (
    "var",
    "std",
    "norm",
    "vector_norm",
    "mean",
    "sum",
    "var_mean",
    "std_mean",
    "linalg_vector_norm",
    "linalg_norm",
    *LARGEST,
)


def unguarded(graph: StepGraph) -> list[tuple[Op, str]]:
    """Divisions by a norm or a standard deviation, and roots of a variance, that nothing keeps away
    from zero.
    """
    found = []
    for op in graph.ops:
        if op.name not in ("rsqrt", "reciprocal", *DIVISIONS) or not op.inputs:
            continue
        if (
            not op.module
            and not any(value.requires_grad for value in op.outputs)
            and not _weighs_the_loss(graph, op)
        ):
            continue  # data being prepared, no part of the model
        divisor = op.inputs[0] if op.name in ("rsqrt", "reciprocal") else op.inputs[-1]
        if op.name not in ("rsqrt", "reciprocal") and len(op.inputs) < 2:
            continue
        made = _behind_guard(graph, graph.origin(divisor, op.index)[1])
        rooted = op.name == "rsqrt"
        if made is not None and made.name in ("sqrt", "pow") and made.inputs:
            made = _behind_guard(graph, graph.origin(made.inputs[0], made.index)[1])
            rooted = True
        if rooted and made is not None and made.name in DIVISIONS and made.inputs:
            # A mean over the real positions is written as a sum over a count, and a count guards
            # nothing.
            made = _behind_guard(graph, graph.origin(made.inputs[0], made.index)[1])
        if made is not None and made.name in SPREADS and _is_spread(graph, made):
            found.append((op, made.name))
    return found


def rooted(run: Run, graph: StepGraph) -> list[tuple[Op, str]]:
    """Roots of a spread inside of the model with nothing added under them: whatever is added to the
    root itself, its slope at zero is infinite.
    """
    paths = model_paths(run)
    found = []
    for op in graph.ops:
        if op.name in ("sqrt", "pow") and op.inputs and op.module in paths:
            made = _behind_guard(graph, graph.origin(op.inputs[0], op.index)[1])
            if made is not None and made.name in SPREADS and _is_spread(graph, made):
                found.append((op, made.name))
    return found


def model_paths(run: Run) -> set[str]:
    """The model's modules, but for criteria that it keeps: those have no parameters and end in a
    single number.
    """
    ends = (
        {op.module for op in run.deep[0].ops for v in op.outputs if not v.shape and v.requires_grad}
        if run.deep
        else set()
    )
    criteria = {m.path for m in run.modules if m.path in ends and not m.num_params}
    return {
        m.path
        for m in run.modules
        if m.path and not any(m.path == c or m.path.startswith(c + ".") for c in criteria)
    }


def _weighs_the_loss(graph: StepGraph, op: Op) -> bool:
    """What it makes is multiplied, outside of the model, with something that has a gradient:
    advantages, weights of samples.
    """
    made = {value.id for value in op.outputs}
    for later in graph.ops:
        if later.index <= op.index or not any(value.id in made for value in later.inputs):
            continue
        if not any(value.requires_grad for value in later.outputs):
            made.update(value.id for value in later.outputs)
        elif later.name in ("mul", "mul_") and not later.module:
            return True
    return False


def _behind_guard(graph: StepGraph, made: Op | None) -> Op | None:
    """What a number was added to that is too small to keep anything away from zero."""
    if made is None or made.name not in ("add", "add_") or len(made.inputs) != 1:
        return made
    number = made.args.get("other")
    nothing = isinstance(number, (int, float)) and abs(number) < NO_GUARD
    return graph.origin(made.inputs[0], made.index)[1] if nothing else made


def _is_spread(graph: StepGraph, made: Op) -> bool:
    """A mean, sum or maximum counts only when squares or absolute values went into it."""
    if made.name not in ("mean", "sum", *LARGEST):
        return True
    before = graph.origin(made.inputs[0], made.index)[1] if made.inputs else None
    if before is None:
        return False
    return before.name in ("abs",) or (
        made.name not in LARGEST and before.name in ("pow", "square", "mul")
    )
