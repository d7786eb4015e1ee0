"""Examples of a batch that influence each other: what was measured, and which programs mean it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sawbones.evidence.limits import model as limits
from sawbones.schema import DeepStep, Influence, Op, Run, Value
from sawbones.stats.sequences import main_call

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
SUMMING = frozenset(
    {"index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"}
)
_GRAPH = SUMMING | {
    "scatter",
    "scatter_",
    "index_select",
    "index_reduce",
    "index_reduce_",
    "segment_reduce",
    "cdist",
}


def mixing(run: Run, deep: DeepStep) -> Iterator[Influence]:
    """Inputs of other examples that the scores of an example depend on, where it is certain which
    dimension holds the examples and the model is not meant to compare them.
    """
    for item in deep.influence:
        share = item.other_examples
        if share is None or not limits.OTHER_EXAMPLES.passed_by(share):
            continue
        if item.mixes or item.dependent < 2 or _compares(deep, item):
            continue
        if _batch_is_known(run, deep, item) and not _model_keeps_apart(run):
            yield item


def batch_size(deep: DeepStep) -> int | None:
    call = main_call(deep)
    if call is None or call.target is None or call.facts.sequence_shape:
        return None
    return call.target.shape[0] if call.target.shape else None


def over_examples(deep: DeepStep, names: Collection[str], batch: int) -> Iterator[tuple[Op, Value]]:
    """Reductions over dimension 0, inside of the model, of values with a row per example."""
    for op in deep.ops:
        dims = op.args.get("dim")
        over = 0 in dims if isinstance(dims, (list, tuple)) else dims == 0
        if op.name in names and over and op.inputs and op.module and not op.args.get("no_grad"):
            value = op.inputs[0]
            if value.requires_grad and value.shape[:1] == (batch,):
                yield op, value


def is_graph(deep: DeepStep, batch: int) -> bool:
    """The first dimension holds the nodes of a graph, or examples are compared on purpose."""
    square = (batch, batch)
    return any(
        op.name in _GRAPH
        or (op.name in _PRODUCTS and any(v.shape[-2:] == square for v in (*op.inputs, *op.outputs)))
        for op in deep.ops
    )


def _batch_is_known(run: Run, deep: DeepStep, item: Influence) -> bool:
    """It is certain which dimension of this input holds the examples."""
    batch = item.source_shape[item.batch_dim]
    layouts = {i.batch_dim for d in run.deep for i in d.influence if i.source == item.source}
    alone = item.batch_dim > 0 and item.source_shape[0] == 1  # one example, or one moment of many
    fits = batch_size(deep) in (None, batch) and batch in item.output_shape
    return fits and len(layouts) == 1 and not alone


def _model_keeps_apart(run: Run) -> bool:
    """Measured on the model alone: it is the loss that compares examples, or the model that sorts
    them on the way and puts its answers back.
    """
    named = [d.probes.get(name) for d in run.deep for name in ("batch", "rows")]
    found = [p.get("others") for p in named if isinstance(p, dict)]
    others = [moved for moved in found if isinstance(moved, float)]
    return bool(others) and all(limits.MODEL_UNMOVED.undercut_by(moved) for moved in others)


def _compares(deep: DeepStep, item: Influence) -> bool:
    """Scores of every example against every other one."""
    call = main_call(deep)
    if call is None or not call.input.shape:
        return True
    batch = item.source_shape[item.batch_dim]
    rows, columns = call.input.shape[0], call.input.shape[-1]
    around = {n * batch + d for n in (1, 2, 4) for d in (-2, -1, 0, 1)}
    square = len(call.input.shape) >= 2 and columns in around
    return square and batch > 2 and rows % batch in (0, batch - 1)
