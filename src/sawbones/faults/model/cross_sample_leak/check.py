"""An example whose output depends on the other examples of its batch

## What it sees
On deep steps, the influence map: how much an example's scores depend on the inputs of other
examples (0 when they do not). Fires from step 0 when sequence inputs do (share over 0.001), when
attention or a recurrent layer runs over the dimension of the batch instead of time (also where a
readout token then meets only its own copies, so that no input reaches the scores; where every place
of a sequence has its own target, the dimension is known by how the rows were drawn: by an index in
no order, or by a loader that shuffles), when nodes of
many graphs are merged and their edges reach the first ones only, when the model averages over the
examples what has a time or space of its own, when it subtracts the mean and divides by the spread
of the batch in evaluation mode too, when a recurrence goes on from the state that the step before
left although other examples were drawn since (over half of the rows do not continue theirs; at two
deep steps in a row), or when position ids restart inside of a row (several documents
packed into one) and the attention mask does not keep those documents apart.

## Why it matters
What is learned depends on who happens to be in the same batch, and is not there when a single
example is asked.

## Looks like
Training goes well; predictions change with the batch size and with the order of the batch, and
evaluation with batch size 1 is poor.

## Example
    layer = nn.TransformerEncoderLayer(d_model, nhead)
    out = nn.TransformerEncoder(layer, 2)(x)

## Use instead
    layer = nn.TransformerEncoderLayer(d_model, nhead, batch_first=True)
    out = nn.TransformerEncoder(layer, 2)(x)

## Confirm it
The influence map is the proof: a gradient from one example's output to another's input is there or
it is not. Packed documents and merged graphs are read off ids and make it likely.

## False alarms
A sequence that is given alone, as (time, 1, features), has a target for each of its places: where
no loader and no index put examples side by side it is taken for that if its places are ids or its
length changes, and is no more than suspected else.
Batch normalisation mixes examples by design and is known by its operator; one written by hand keeps
averages for evaluation, so that its outputs differ between the two modes. In contrastive losses the
scores are compared across the batch, so there are as many classes as examples; those are left out.
Graph networks and set models whose first dimension is no batch have no (batch, time) input and are
only suspected; merged graphs count only where nodes are summed per example and no message reaches
the second half of them, on any deep step. Packing without separating documents is common in
pretraining; it counts only where positions restart, which shows that the documents were to be kept
apart. A recurrent layer that takes the first dimension for time is right as long as nothing shows
that drawn examples lie there: targets of (time, batch) and rows in order leave it its belief. Streams that are read on keep their
state: their rows follow on one another at one distance, or are pieces of one drawn batch. A state
of zeros is a fresh one. Memory banks, running statistics and stored states of a replay are no rows
of the step before, or nothing recurs on them.

## References
batch_first is False by default in torch.nn.Transformer, MultiheadAttention and the recurrent
layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, compared, counted, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.evidence.mixing import SUMMING, batch_size, is_graph, mixing, over_examples
from sawbones.schema import (
    DeepStep,
    Evidence,
    Finding,
    Fix,
    Influence,
    Module,
    Op,
    Run,
    Site,
    TokenInput,
    Value,
)
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import attention_ops, main_call, mask_makers
from sawbones.trace.graph import StepGraph
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import built_at

NEEDS = ("deep",)
USES = ("loaders",)
EXPLAINS = (
    "model.position-missing",
    "data.labels-misaligned",
    "evaluation.overfitting",
    "model.causal-leak",
    "loss.label-shift",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = None
MIN_GRAPHS = 4  # in a batch of merged graphs
_SPREAD = frozenset({"var", "std", "var_mean", "std_mean"})
_POOLING = frozenset({"mean", "sum", "amax", "max", "logsumexp"})
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def check(run: Run) -> Iterator[Finding]:
    pooled = [(deep, nodes) for deep in run.deep if (nodes := _pooled_nodes(deep))]
    if not pooled and not any(d.influence or batch_size(d) or d.tokens for d in run.deep):
        raise NothingToJudge("which dimension holds the examples of a batch is not known")
    for deep in run.deep[:4]:
        found = _swapped(run, deep) or _measured(run, deep) or _packed(deep)
        if found is not None:
            yield found
            return
    yield from _carried(run)
    yield from _merged_graphs(run, pooled)


def _carried(run: Run) -> Iterator[Finding]:
    """A recurrence goes on from what the examples of the batch before left."""
    for deep in run.deep:
        state = deep.probes.get("carried")
        if not state or not limits.DRAWN_ELSEWHERE.reached_by(1 - state["go_on"]):
            continue
        num, going_on = state["examples"], round(state["go_on"] * state["examples"])
        text = (
            f"each of {num} examples is answered from its row of a {tuple(state['shape'])} state "
            f"that the step before left for another batch; at most {going_on} of them continue "
            "the example of that row"
        )
        steps = (deep.step - 1, deep.step)
        yield finding(
            "Examples go on from the state that those of the batch before left",
            locate(*map(as_site, state["sites"])),
            (
                counted(
                    text, num - going_on, num, limits.DRAWN_ELSEWHERE, signal="deep", steps=steps
                ),
            ),
            Fix("Begin each batch with a fresh state: make it, or pass none, inside of the loop."),
            at_most="likely",
        )
        return


def _merged_graphs(run: Run, pooled: list[tuple[DeepStep, int]]) -> Iterator[Finding]:
    """Nodes of many graphs in one block, whose edges count from zero for every graph: all messages
    go to the first graphs.
    """
    short = [(deep, *edges) for deep, n in pooled if (edges := _short_edges(deep, n)) is not None]
    if not short or len(short) < len(pooled):
        return
    joined = [made.site for found in short if (made := _joined(*found)) is not None]
    loaders = [loader.site for loader in run.loaders[:1]]
    deep, op, index = short[0]
    nodes = pooled[0][1]
    yield _finding(
        exact(
            f"{op.name} hands messages to {nodes} nodes of {batch_size(deep)} graphs, but no edge "
            f"goes beyond node {index.max:.0f}: every graph's edges count from zero, so that the "
            "first graphs get the messages of all",
            index.max or 0,
            expected=nodes - 1,
            signal="influence",
            steps=(deep.step,),
        ),
        locate(*joined[:1], *loaders, op),
        "Add to every graph's edges the number of nodes before it when graphs are merged into one.",
        at_most="likely",  # the last graphs may have no edges
    )


def _scattered(deep: DeepStep) -> Iterator[tuple[Op, Value, int]]:
    """Sums by index: the operator, its index, and the number of rows that are summed into."""
    for op in deep.ops:
        if (
            op.name not in SUMMING
            or op.args.get("no_grad")
            or not op.outputs
            or not op.outputs[0].shape
        ):
            continue
        index = next(
            (v for v in op.inputs if v.dtype.startswith("int") and v.shape and v.max is not None),
            None,
        )
        if index is not None and op.outputs[0].requires_grad:
            yield op, index, op.outputs[0].shape[0]


def _pooled_nodes(deep: DeepStep) -> int | None:
    """How many rows are summed up into one row per example, when every example has some."""
    batch = batch_size(deep)
    for _, index, rows in _scattered(deep):
        if batch is None or rows != batch or rows < MIN_GRAPHS:
            continue
        if index.shape[0] > 2 * batch and (index.min, index.max) == (0, batch - 1):
            return index.shape[0]
    return None


def _short_edges(deep: DeepStep, nodes: int) -> tuple[Op, Value] | None:
    """Sums into those nodes, none of which reaches the second half of them."""
    into = [(op, index) for op, index, rows in _scattered(deep) if rows == nodes]
    reaches = any(2 * ((index.max or 0) + 1) >= nodes for _, index in into)
    return None if reaches or not into else into[0]


def _joined(deep: DeepStep, op: Op, index: Value) -> Op | None:
    """The operator in which the edges of the graphs became one tensor."""
    made = StepGraph(deep).origin(index, op.index)[1]
    joining = ("cat", "hstack")
    return made if made is not None and made.name in joining else None


def _finding(
    reading: Evidence, where: tuple[Site, ...], fix: str, at_most: str = "proven"
) -> Finding:
    title = "Examples of a batch influence each other"
    return finding(title, where, (reading,), Fix(fix), at_most=at_most)


def _mixed(share: float, text: str, deep: DeepStep) -> Evidence:
    within = limits.OTHER_EXAMPLES.value
    return exact(text, share, within=within, signal="influence", steps=(deep.step,))


def _swapped(run: Run, deep: DeepStep) -> Finding | None:
    """A layer that takes the first dimension for time is given one in which it is the batch."""
    batch, length = batch_size(deep) or _num_drawn(deep), _length(deep)
    if batch is None:
        return None
    mixing = max((i.other_examples or 0 for i in deep.influence if not i.mixes), default=0)
    mixes = limits.OTHER_EXAMPLES.passed_by(mixing)
    # A readout token that meets only its own copies in the other examples: no input reaches the
    # scores, now or later.
    blind = len(run.deep) > 1 and all(
        d.influence and not any(i.dependent for i in d.influence) for d in run.deep
    )
    for op in deep.ops:
        recurrent = op.name in _RECURRENT
        if not (mixes or (not deep.influence if recurrent else blind)):
            continue
        layer = _layer(run, op.module)
        if not _time_first(op, layer):
            continue
        shape = op.inputs[0].shape
        if recurrent and _may_be_time(deep, shape):
            continue
        if len(shape) != 3 or shape[0] != batch or shape[1] == batch:
            continue
        alone = recurrent and shape[1] == 1 and not _are_many(run, deep, batch)
        if alone and _is_one_sequence(run, op, batch):
            continue
        if length is not None and shape[1] not in (length, length + 1 if blind else length):
            continue
        text = (
            f"{op.name} takes dimension 0 of {shape} for time (batch_first=False); it is the "
            f"batch of {batch} examples"
        )
        reading = (
            _mixed(mixing, text, deep)
            if mixes
            else exact(text, batch, expected=shape[1], signal="influence", steps=(deep.step,))
        )
        where = locate(*_built(run, layer.path if layer is not None else op.module), op)
        fix = "Build the layer with batch_first=True, or hand it (time, batch, features)."
        return _finding(reading, where, fix, "suspected" if alone else "proven")
    return None


def _are_many(run: Run, deep: DeepStep, num: int) -> bool:
    """So many examples were put side by side by a loader, or picked one by one out of a table."""
    sizes = {loader.source: loader.batch_size for loader in run.loaders}
    for batch in run.batches:
        shapes = [tuple(t.get("shape") or ()) for t in batch.tensors]
        if batch.step == deep.step and sizes.get(batch.source, 1) != 1:
            return any(shape[:1] == (num,) for shape in shapes)
    picking = (op for op in deep.ops if op.name in ("__getitem__", "index_select"))
    return any(
        not op.module
        and any(v.shape == (num,) and v.dtype.startswith("int") for v in op.inputs[1:])
        and op.outputs[0].shape[:1] == (num,)
        for op in picking
        if op.outputs
    )


def _is_one_sequence(run: Run, layer: Op, num: int) -> bool:
    """Places of one text, of one id each; or sequences of many lengths, one at a time."""
    ids = any(math.prod(t.shape) == num == max(t.shape) for d in run.deep for t in d.tokens)
    inputs = (op.inputs[0] for d in run.deep for op in d.ops if op.site == layer.site and op.inputs)
    lengths = {value.shape[0] for value in inputs if len(value.shape) == 3}
    return ids or len(lengths) > 2  # the last batch of an epoch is shorter


def _num_drawn(deep: DeepStep) -> int | None:
    """Examples of a batch, where every place of a sequence has a target of its own."""
    call = main_call(deep)
    if call is None or call.facts.sequence_shape is None or call.facts.drawn_dim is None:
        return None
    return call.facts.sequence_shape[call.facts.drawn_dim]


def _may_be_time(deep: DeepStep, shape: tuple[int, ...]) -> bool:
    """Every place has a target of its own, and nothing says which dimension holds the examples."""
    call = main_call(deep)
    if call is None or call.target is None or call.facts.sequence_shape is not None:
        return False
    return call.target.shape[:2] == shape[:2] and call.facts.drawn_dim != 0


def _layer(run: Run, path: str) -> Module | None:
    """The module of an operator; of several models without a name, the only one of its class."""
    named = [m for m in run.modules if m.path == path]
    found = named or [m for m in run.modules if m.cls == path]
    return found[0] if len(found) == 1 else None


def _time_first(op: Op, module: Module | None) -> bool:
    """A sequence layer that was built with batch_first=False."""
    sequential = op.name in (*_RECURRENT, "multi_head_attention_forward")
    if not sequential or module is None or not op.inputs or op.args.get("no_grad"):
        return False
    return module.settings.get("batch_first") is False


def _built(run: Run, path: str) -> tuple[Site, ...]:
    """Where the module, or the nearest one around it whose making was seen, was built."""
    built, parts = built_at(run), path.split(".")
    return locate(*(built.get(".".join(parts[:n])) for n in range(len(parts), 0, -1)))[:1]


def _sequences(deep: DeepStep) -> list[TokenInput]:
    return [t for t in deep.tokens if t.role == "tokens" and t.time_dim is not None]


def _length(deep: DeepStep) -> int | None:
    return next((t.shape[t.time_dim or 0] for t in _sequences(deep)), None)


def _measured(run: Run, deep: DeepStep) -> Finding | None:
    for item in mixing(run, deep):
        share = item.other_examples or 0
        text = f"{100 * share:.2g} % of an example's dependence is on the inputs of other examples"
        sure = item.source.startswith("embedding:") and len(item.source_shape) == 3
        sure = sure and item.time_dim >= 0
        spread = None if sure else _standardising(deep, item.source_shape[item.batch_dim])
        pooled = None if sure else _pooled_over_batch(deep, item)
        if spread is not None:
            where = locate(spread, item)
            text += (
                f"; {spread.name} runs over dimension 0 of {spread.inputs[0].shape}, and "
                "evaluation mode changes nothing about it"
            )
            fix = (
                "Normalise every example on its own (dim=-1), or use nn.BatchNorm1d, which "
                "has its own averages for evaluation."
            )
        elif pooled is not None:
            where = locate(pooled, item)
            text += (
                f"; {pooled.name} runs over dimension 0 of {pooled.inputs[0].shape}, which is "
                "the batch"
            )
            fix = (
                "Reduce over time or space, not over the examples: the batch is dimension 0 there."
            )
        else:
            where = locate(*_mixing_sites(deep, item), item)
            fix = (
                "Keep the batch dimension apart: check every transpose, reshape and reduction on "
                "the way, and batch_first."
            )
        named = spread is not None or pooled is not None
        at_most = "proven" if sure else "likely" if named else "suspected"
        return _finding(_mixed(share, text, deep), where, fix, at_most)
    return None


def _pooled_over_batch(deep: DeepStep, item: Influence) -> Op | None:
    """Inside of the model, an average or sum over the examples of values that have a time or space
    of their own as well.
    """
    batch, gap = item.source_shape[item.batch_dim], deep.probes.get("eval_gap")
    if item.batch_dim != 0 or item.source_shape.count(batch) != 1 or is_graph(deep, batch):
        return None
    if not isinstance(gap, dict) or gap.get("batchnorm"):
        return None
    for op, value in over_examples(deep, _POOLING, batch):
        if len(value.shape) >= 3 and value.shape.count(batch) == 1:
            return op
    return None


def _standardising(deep: DeepStep, batch: int) -> Op | None:
    """Mean and spread over the batch inside of the model, the same in evaluation mode, where no
    batch statistics are kept.
    """
    gap, call = deep.probes.get("eval_gap"), main_call(deep)
    distance = gap.get("distance") if isinstance(gap, dict) else None
    if not isinstance(distance, float) or not limits.MODEL_UNMOVED.kept_by(distance):
        return None
    if call is None or call.facts.target_requires_grad or is_graph(deep, batch):
        return None
    means = [op for op in deep.ops if op.name == "mean" and op.inputs]
    centred = {op.inputs[0].id for op in means if op.args.get("dim") in (0, [0])}
    for op, value in over_examples(deep, _SPREAD, batch):
        if len(value.shape) == 2 and (op.name.endswith("_mean") or value.id in centred):
            return op
    return None


def _mixing_sites(deep: DeepStep, item: Influence) -> list[Site]:
    """Attention or reductions that run over as many entries as there are examples."""
    batch = item.source_shape[item.batch_dim]
    length = item.source_shape[item.time_dim] if item.time_dim >= 0 else 0
    attending = [a.site for a in deep.attention if a.keys == batch != length and a.site is not None]
    if attending:
        return attending[:1]
    over = (item.batch_dim, [item.batch_dim])
    for op in deep.ops:
        reduces = op.name in ("mean", "sum", "softmax", "cumsum") and op.args.get("dim") in over
        if reduces and op.inputs and len(op.inputs[0].shape) == 3:
            return list(locate(op))
    return []


def _packed(deep: DeepStep) -> Finding | None:
    positions = [t for t in deep.tokens if t.role == "positions"]
    tokens = _sequences(deep)
    if len(positions) != 1 or not tokens:
        return None
    ids, token = positions[0], tokens[0]
    length = token.shape[token.time_dim or 0]
    if ids.shape != token.shape or ids.varies != (0, 1):
        return None
    used = (ids.max + 1) / length
    if not limits.PACKED_POSITIONS.kept_by(used) or limits.PADDED_ROWS.passed_by(token.pad_share):
        return None  # padding, not packing, keeps positions low
    for attention, op in attention_ops(deep):
        mask = attention.mask
        triangle = mask.get("triangle") == "lower" and mask.get("diagonal") == 0
        whole = mask.get("is_causal") or triangle or "shape" not in mask
        if attention.queries == attention.keys == length and whole:
            return _finding(
                compared(
                    f"position ids restart inside of a row (at most {ids.max} in a row of "
                    f"{length}), and the mask lets every position see all {length} or all before "
                    "it: documents packed into one row see each other",
                    used,
                    limits.PACKED_POSITIONS,
                    below=True,
                    expected=1,
                    signal="influence",
                    steps=(deep.step,),
                ),
                locate(*mask_makers(deep, attention, op), attention),
                "Combine the mask with one that is true only inside the same document.",
            )
    return None
