"""Models of sequences into which no order enters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sawbones.schema import DeepStep, Op, Run, Value
from sawbones.stats.positions import ADDING, Added, added_codes, time_dim_of
from sawbones.stats.sequences import attention_ops, keys_of, main_call
from sawbones.trace.graph import StepGraph, data_values, first_features, lookup

_ORDERED = (
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "cumsum",
    "conv_transpose1d",
    "roll",
    "flip",
    "rnn",
)


@dataclass(frozen=True)
class Orderless:
    """Attention that looks both ways over vectors that nothing tells the place of."""

    start: Op  # makes the vectors
    length: int
    layers: int
    lost: Op | None  # adds a code for each position, and its sum is not used
    blank: Added | None  # adds a code for each position that is the same number everywhere
    alike: Added | None  # one learned vector, added at every position


def orderless(deep: DeepStep) -> Orderless | None:
    start, length = _start(deep)
    if start is None or length < 3:
        return None
    graph = StepGraph(deep)
    mine = graph.reached(start.outputs)
    looking = [
        (a, op)
        for a, op in attention_ops(deep)
        if a.keys in (length, length + 1) and keys_of(graph, a, op) in mine
    ]
    if not looking or (
        looking[0][0].queries == looking[0][0].keys and looking[0][0].future_mass < 0.01
    ):
        return None
    used = _used(deep)
    entering = list(_order_enters(deep, mine, length))
    if any(op.index in used for op in entering):
        return None
    before = looking[0][1].index
    lost = next((op for op in entering if op.name in ADDING and op.site is not None), None)
    alike = _alike(deep, graph, mine, before)
    return Orderless(start, length, len(looking), lost, _blank(deep, mine, length, before), alike)


def _blank(deep: DeepStep, mine: set[int], length: int, before: int) -> Added | None:
    """A code cut from a fixed table with a row for every position, of one number throughout."""
    for added in added_codes(deep):
        code, enters = added.code, added.data.id in mine and added.op.index < before
        for_each = _is_tied(code, length) and code.shape[-1] > 1
        if enters and for_each and _is_one_number(code):
            return added
    return None


def _alike(deep: DeepStep, graph: StepGraph, mine: set[int], before: int) -> Added | None:
    """A learned vector of its own with room for positions, (1, 1, features), that all of them get
    before they are attended to.
    """
    for added in added_codes(deep):
        learned = added.code.requires_grad and graph.maker(added.code, added.op.index) is None
        single = len(added.code.shape) == 3 and added.sizes == (1, 1)
        if learned and single and added.data.id in mine and added.op.index < before:
            return added
    return None


def adding_params(run: Run, deep: DeepStep, start: Op) -> dict[str, Any]:
    """What the experiment that adds codes has to know."""
    return {
        "module": start.module if _is_leaf(run, start.module) else None,
        "op": start.name,
        "file": start.site.file if start.site is not None else "",
        "line": start.site.line if start.site is not None else 0,
        "time_dim": time_dim_of(deep),
        "shape": list(start.outputs[0].shape),
        "channels_first": start.name.startswith("conv"),
    }


def _is_leaf(run: Run, path: str) -> bool:
    """A layer that holds no others: what it returns is what its operator made."""
    paths = {m.path for m in run.modules}
    return path in paths and not any(p.startswith(f"{path}.") for p in paths) and path != ""


def _start(deep: DeepStep) -> tuple[Op | None, int]:
    """The operator that makes the vectors, and how many positions they have."""
    for token in deep.tokens:
        if token.role == "tokens" and token.time_dim is not None and len(token.shape) == 2:
            return lookup(deep, token), token.shape[token.time_dim]
    for item in deep.influence:
        op = first_features(deep, item)
        if op is not None and item.time_dim >= 0:
            return op, item.source_shape[item.time_dim]
        space = item.source_shape[2:]
        if op is not None and op.name.startswith("conv") and space and _is_patching(op):
            return op, math.prod(space)  # patches, in channels-first form until they are flattened
    return None, 0


def _used(deep: DeepStep) -> set[int]:
    """Indexes of the operators whose results go into the loss; all of them where its input is not
    among their results.
    """
    call, graph = main_call(deep), StepGraph(deep, with_no_grad=True)
    if call is None or graph.maker(call.input) is None:
        return {op.index for op in deep.ops}
    return {op.index for op in graph.behind(call.input)}


def _order_enters(deep: DeepStep, mine: set[int], length: int) -> Iterator[Op]:
    """The operators through which order may reach what was made of the input."""
    data = data_values(deep) | mine
    for op in deep.ops:
        if op.args.get("no_grad") or not any(v.id in mine for v in op.inputs):
            continue
        if op.name in _ORDERED or (op.name.startswith("conv") and not _is_patching(op)):
            yield op
        if op.name in ("multi_head_attention_forward", "scaled_dot_product_attention"):
            if any(_is_square(v, length) for v in op.inputs if v.id not in data):
                yield op
            continue
        others = [v for v in op.inputs if v.id not in data and len(v.shape) >= 1]
        # A linear layer's own weights may have a side of that length; anything else of that length
        # is tied to positions.
        if op.name not in (
            "linear",
            "layer_norm",
            "embedding",
            "batch_norm",
            "addmm",
            "rms_norm",
            "cross_entropy",
            "mse_loss",
        ):
            if any(_is_tied(v, length) for v in others if not _is_one_number(v)):
                yield op
        elif op.name == "linear" and len(op.inputs) > 1 and _mixes_time(op, length):
            yield op


def _is_tied(value: Value, length: int) -> bool:
    """It has an entry for each position, or for each pair of them."""
    return bool({length, length + 1} & set(value.shape[:-1])) or _is_square(value, length)


def _is_one_number(value: Value) -> bool:
    """Nothing learned, and the same number everywhere: a code like that says nothing of places."""
    known = value.min is not None and not value.nonfinite
    return known and value.min == value.max and not value.requires_grad


def _mixes_time(op: Op, length: int) -> bool:
    """A layer over flattened or transposed sequences: its inputs run over positions."""
    given, weight = op.inputs[0].shape, op.inputs[1].shape
    return (
        len(given) == 2
        and weight[-1] > length
        and weight[-1] % length == 0
        and weight[-1] // length >= 8
        and length > 4
    )


def _is_square(value: Value, length: int) -> bool:
    return (
        len(value.shape) >= 2
        and value.shape[-1] in (length, length + 1)
        and value.shape[-2] in (length, length + 1)
    )


def _is_patching(op: Op) -> bool:
    """A convolution whose windows do not overlap: patches."""
    weight = op.inputs[1].shape if len(op.inputs) > 1 else ()
    stride = op.args.get("stride", op.args.get("arg3"))
    stride = (
        list(stride) if isinstance(stride, (list, tuple)) else [stride] * max(len(weight) - 2, 0)
    )
    return all(n == 1 for n in weight[2:]) or (len(weight) > 2 and list(weight[2:]) == stride)
