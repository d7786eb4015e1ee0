"""An example whose output depends on the other examples of its batch

## What it sees
On deep steps, the influence map: how much an example's scores depend on the inputs of other
examples (0 when they do not). Fires from step 0 when sequence inputs do (share over 0.001), when
attention or a recurrent layer runs over the dimension of the batch instead of time (also where a
readout token then meets only its own copies, so that no input reaches the scores), when nodes of
many graphs are merged and their edges reach the first ones only, when the model averages over the
examples what has a time or space of its own, when it subtracts the mean and divides by the spread
of the batch in evaluation mode too, or when position ids restart inside of a row (several documents
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
it is not.

## False alarms
Batch normalisation mixes examples by design and is known by its operator; one written by hand keeps
averages for evaluation, so that its outputs differ between the two modes. In contrastive losses the
scores are compared across the batch, so there are as many classes as examples; those are left out.
Graph networks and set models whose first dimension is no batch have no (batch, time) input and are
only suspected; merged graphs count only where nodes are summed per example and no message reaches
the second half of them, on any deep step. Packing without separating documents is common in
pretraining; it counts only where positions restart, which shows that the documents were to be kept
apart.

## References
batch_first is False by default in torch.nn.Transformer, MultiheadAttention and the recurrent
layers.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Influence, Op, Run, Site, Value
from sawbones.stats.dataflow import Flow
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import attention_ops, main_call, mask_makers

NEEDS = ("deep",)
EXPLAINS = (
    "model.position-missing",
    "data.labels-misaligned",
    "evaluation.overfitting",
    "model.causal-leak",
    "loss.label-shift",
)
EXPERIMENT = None
MIXED = 1e-3
_SPREAD = frozenset({"var", "std", "var_mean", "std_mean"})
_PRODUCTS = frozenset(
    {
        "matmul",
        "mm",
        "bmm",
        "einsum",
        "baddbmm",
        "tensordot",
        "cosine_similarity",
        "softmax",
        "spmm",
    }
)
_SUMMING = frozenset(
    {"index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"}
)
_POOLING = frozenset({"mean", "sum", "amax", "max", "logsumexp"})
_GRAPH = frozenset(
    {
        "index_add",
        "index_add_",
        "scatter_add",
        "scatter_add_",
        "scatter_reduce",
        "scatter_reduce_",
        "scatter",
        "scatter_",
        "index_select",
        "index_reduce",
        "index_reduce_",
        "segment_reduce",
        "cdist",
    }
)


def check(run: Run) -> Iterator[Finding]:
    for deep in run.deep[:4]:
        found = _swapped(run, deep) or _measured(run, deep) or _packed(deep)
        if found is not None:
            yield found
            return
    yield from _merged_graphs(run)


def _merged_graphs(run: Run) -> Iterator[Finding]:
    """Nodes of many graphs in one block, whose edges count from zero for every graph: all messages
    go to the first graphs.
    """
    pooled = [(deep, nodes) for deep in run.deep if (nodes := _pooled_nodes(deep))]
    short = [
        (deep, nodes, found)
        for deep, nodes in pooled
        if (found := _short_edges(deep, nodes)) is not None
    ]
    if not short or len(short) < len(pooled):
        return
    made = [
        (deep, nodes, op, maker)
        for deep, nodes, (op, index) in short
        for maker in [_joined(deep, op, index)]
        if maker is not None
    ]
    deep, nodes, (op, index) = short[0]
    sites = places(*[maker.site for *_, maker in made[:1]], *_loaders(run), op.site)
    text = (
        f"{op.name} hands messages to {nodes} nodes of {_graphs(deep, nodes)} graphs, but no edge goes beyond node "
        f"{index.max:.0f}: "
        "every graph's edges count from zero, so that the first graphs get the messages of all"
    )
    fix = (
        "Add to every graph's edges the number of nodes before it when graphs are merged into one."
    )
    yield _finding("likely", 0.92, text, deep, sites, fix)


def _loaders(run: Run) -> list[Site | None]:
    return [as_site(loader.get("site")) for loader in (run.facts.get("loaders") or ())[:1]]


def _scattered(deep: DeepStep) -> Iterator[tuple[Op, Value, int]]:
    """Sums by index: the operator, its index, and the number of rows that are summed into."""
    for op in deep.ops:
        if (
            op.name not in _SUMMING
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
    batch = _batch_size(deep)
    for _, index, rows in _scattered(deep):
        if (
            batch is not None
            and rows == batch >= 4
            and index.shape[0] > 2 * batch
            and index.min == 0
            and index.max == batch - 1
        ):
            return index.shape[0]
    return None


def _graphs(deep: DeepStep, nodes: int) -> int:
    return next(
        rows
        for _, index, rows in _scattered(deep)
        if rows == _batch_size(deep) and index.shape[0] == nodes
    )


def _short_edges(deep: DeepStep, nodes: int) -> tuple[Op, Value] | None:
    """Sums into those nodes, none of which reaches the second half of them."""
    into = [(op, index) for op, index, rows in _scattered(deep) if rows == nodes]
    return (
        into[0] if into and all(2 * ((index.max or 0.0) + 1) < nodes for _, index in into) else None
    )


def _joined(deep: DeepStep, op: Op, index: Value) -> Op | None:
    """The operator in which the edges of the graphs became one tensor."""
    made = Flow(deep).origin(index, op.index)[1]
    return (
        made
        if made is not None and made.name in ("cat", "concat", "concatenate", "hstack")
        else None
    )


def _finding(
    status: str,
    confidence: float,
    text: str,
    deep: DeepStep,
    where: tuple[Site, ...],
    fix: str,
    share: float | None = None,
) -> Finding:
    evidence = Evidence(text, "influence", (deep.step,), share, 0.0 if share is not None else None)
    title = "Examples of a batch influence each other"
    return Finding(
        "model.cross-sample-leak", status, confidence, title, where, (evidence,), Fix(fix)
    )


def _swapped(run: Run, deep: DeepStep) -> Finding | None:
    """A layer that takes the first dimension for time is given one in which it is the batch."""
    batch, length = _batch_size(deep), _length(deep)
    if batch is None:
        return None
    settings = {m.path: m for m in run.modules}
    mixing = max((i.other_examples or 0.0 for i in deep.influence if not i.mixes), default=0.0)
    # A readout token that meets only its own copies in the other examples: no input reaches the
    # scores, now or later.
    blind = (
        all(d.influence and all(i.dependent == 0 for i in d.influence) for d in run.deep)
        and len(run.deep) > 1
    )
    for op in deep.ops:
        module = settings.get(op.module)
        first = module.settings.get("batch_first") if module is not None else None
        if first is not False or not op.inputs or op.args.get("no_grad"):
            continue
        shape = op.inputs[0].shape
        recurrent = op.name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        attends = op.name == "multi_head_attention_forward"
        if not (recurrent or attends) or len(shape) != 3 or shape[0] != batch or shape[1] == batch:
            continue
        if length is not None and shape[1] != length and not (blind and shape[1] == length + 1):
            continue
        if not recurrent and mixing <= MIXED and not blind:
            continue
        if recurrent and deep.influence and mixing <= MIXED:
            continue
        text = (
            f"{op.name} takes dimension 0 of {shape} for time (batch_first=False); it is the "
            f"batch of {batch} examples"
        )
        fix = "Build the layer with batch_first=True, or hand it (time, batch, features)."
        return _finding(
            "proven",
            0.97,
            text,
            deep,
            places(*_built(run, op.module), op.site),
            fix,
            mixing or None,
        )
    return None


def _built(run: Run, path: str) -> list[Site]:
    """Where the module, or the nearest one around it whose making was seen, was built."""
    built = {m.path: m.built for m in run.modules}
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        site = built.get(".".join(parts[:count]))
        if site is not None:
            return [site]
    return []


def _batch_size(deep: DeepStep) -> int | None:
    call = main_call(deep)
    if (
        call is None
        or call.target is None
        or not call.target.shape
        or call.facts.get("sequence_shape")
    ):
        return None
    return call.target.shape[0]


def _length(deep: DeepStep) -> int | None:
    for token in deep.tokens:
        if token.role == "tokens" and token.time_dim is not None:
            return token.shape[token.time_dim]
    return None


def _measured(run: Run, deep: DeepStep) -> Finding | None:
    for item in deep.influence:
        share = item.other_examples
        if (
            share is None
            or share <= MIXED
            or item.mixes
            or item.dependent < 2
            or _compares(deep, item)
        ):
            continue
        batch = item.source_shape[item.batch_dim]
        layouts = {i.batch_dim for d in run.deep for i in d.influence if i.source == item.source}
        alone = (
            item.batch_dim > 0 and item.source_shape[0] == 1
        )  # one example, or one moment of many
        if (
            _batch_size(deep) not in (None, batch)
            or batch not in item.output_shape
            or len(layouts) > 1
            or alone
        ):
            continue  # it is not certain which dimension is the batch
        probe = deep.probes.get("batch")
        if (
            isinstance(probe, dict)
            and isinstance(probe.get("others"), float)
            and probe["others"] < 1e-6
        ):
            continue  # the model keeps examples apart; it is the loss that compares them
        sure = (
            item.source.startswith("embedding:")
            and item.time_dim >= 0
            and len(item.source_shape) == 3
        )
        spread = None if sure else _standardising(deep, batch)
        text = f"{100 * share:.2g} % of an example's dependence is on the inputs of other examples"
        fix = (
            "Keep the batch dimension apart: check every transpose, reshape and reduction on "
            "the way, and batch_first."
        )
        where = places(*_mixing_sites(deep, item), item.site)
        if spread is not None:
            text += (
                f"; {spread.name} runs over dimension 0 of {spread.inputs[0].shape}, and "
                "evaluation mode changes nothing about it"
            )
            fix = (
                "Normalise every example on its own (dim=-1), or use nn.BatchNorm1d, which "
                "has its own averages for evaluation."
            )
            return _finding("likely", 0.85, text, deep, places(spread.site, item.site), fix, share)
        pooled = None if sure else _pooled_over_batch(deep, item)
        if pooled is not None:
            text += (
                f"; {pooled.name} runs over dimension 0 of {pooled.inputs[0].shape}, which is "
                "the batch"
            )
            fix = (
                "Reduce over time or space, not over the examples: the batch is dimension 0 there."
            )
            return _finding("likely", 0.88, text, deep, places(pooled.site, item.site), fix, share)
        return _finding(
            "proven" if sure else "suspected", 0.95 if sure else 0.4, text, deep, where, fix, share
        )
    return None


def _pooled_over_batch(deep: DeepStep, item: Influence) -> Op | None:
    """Inside of the model, an average or sum over the examples of values that have a time or space
    of their own as well.
    """
    batch, gap = item.source_shape[item.batch_dim], deep.probes.get("eval_gap")
    if (
        item.batch_dim != 0
        or item.source_shape.count(batch) != 1
        or not isinstance(gap, dict)
        or gap.get("batchnorm")
    ):
        return None
    if _is_graph(deep, batch):
        return None
    for op in deep.ops:
        dim = op.args.get("dim")
        if (
            op.name not in _POOLING
            or dim not in (0, [0], (0,))
            or not op.module
            or op.args.get("no_grad")
            or not op.inputs
        ):
            continue
        value = op.inputs[0]
        if (
            len(value.shape) >= 3
            and value.shape[0] == batch
            and value.shape.count(batch) == 1
            and value.requires_grad
        ):
            return op
    return None


def _is_graph(deep: DeepStep, batch: int) -> bool:
    """The first dimension holds the nodes of a graph, or examples are compared on purpose."""
    square = (batch, batch)
    return any(
        op.name in _GRAPH
        or (op.name in _PRODUCTS and any(v.shape[-2:] == square for v in (*op.inputs, *op.outputs)))
        for op in deep.ops
    )


def _standardising(deep: DeepStep, batch: int) -> Op | None:
    """Mean and spread over the batch inside of the model, the same in evaluation mode, where no
    batch statistics are kept.
    """
    gap, call = deep.probes.get("eval_gap"), main_call(deep)
    distance = gap.get("distance") if isinstance(gap, dict) else None
    if (
        not isinstance(distance, float)
        or distance > 1e-6
        or call is None
        or call.facts.get("target_requires_grad")
    ):
        return None
    if _is_graph(deep, batch):
        return None
    centred = {
        op.inputs[0].id
        for op in deep.ops
        if op.name == "mean" and op.inputs and op.args.get("dim") in (0, [0])
    }
    for op in deep.ops:
        if (
            op.name not in _SPREAD
            or op.args.get("dim") not in (0, [0])
            or not op.module
            or op.args.get("no_grad")
            or not op.inputs
        ):
            continue
        value = op.inputs[0]
        both = op.name.endswith("_mean") or value.id in centred
        if both and len(value.shape) == 2 and value.shape[0] == batch and value.requires_grad:
            return op
    return None


def _compares(deep: DeepStep, item: Influence) -> bool:
    """Scores of every example against every other one."""
    call = main_call(deep)
    if call is None or not call.input.shape:
        return True
    batch = item.source_shape[item.batch_dim]
    around = {n * batch + d for n in (1, 2, 4) for d in (-2, -1, 0, 1)}
    rows = call.input.shape[0]
    return (
        len(call.input.shape) >= 2
        and call.input.shape[-1] in around
        and rows % max(batch, 1) in (0, batch - 1)
        and batch > 2
    )


def _mixing_sites(deep: DeepStep, item: Influence) -> list[Site]:
    """Attention or reductions that run over as many entries as there are examples."""
    batch, length = (
        item.source_shape[item.batch_dim],
        item.source_shape[item.time_dim] if item.time_dim >= 0 else 0,
    )
    attending = [a.site for a in deep.attention if a.keys == batch != length and a.site is not None]
    if attending:
        return attending[:1]
    for op in deep.ops:
        dim = op.args.get("dim")
        if (
            op.name in ("mean", "sum", "softmax", "cumsum")
            and dim in (item.batch_dim, [item.batch_dim])
            and op.inputs
            and len(op.inputs[0].shape) == 3
        ):
            return [op.site] if op.site is not None else []
    return []


def _packed(deep: DeepStep) -> Finding | None:
    positions = [t for t in deep.tokens if t.role == "positions"]
    tokens = [t for t in deep.tokens if t.role == "tokens" and t.time_dim is not None]
    if (
        len(positions) != 1
        or not tokens
        or positions[0].shape != tokens[0].shape
        or positions[0].varies != (0, 1)
    ):
        return None
    time_dim = tokens[0].time_dim or 0
    length = tokens[0].shape[time_dim]
    if positions[0].max + 1 > 0.75 * length or tokens[0].pad_share > 0.2:
        return None  # padding, not packing, keeps positions low
    for attention, op in attention_ops(deep):
        whole = (
            attention.mask.get("is_causal")
            or (attention.mask.get("triangle") == "lower" and attention.mask.get("diagonal") == 0)
            or "shape" not in attention.mask
        )
        if attention.queries != length or attention.keys != length or not whole:
            continue
        text = (
            f"position ids restart inside of a row (at most {positions[0].max} in a row of {length}), and the mask lets every "
            f"position see all {length} or all before it: documents packed into one row see each other"
        )
        fix = "Combine the mask with one that is true only inside the same document."
        where = places(*mask_makers(deep, attention, op), attention.site)
        return _finding("proven", 0.93, text, deep, where, fix)
    return None
