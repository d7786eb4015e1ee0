"""Losses written by hand: found from the backward's root, by the operators between the model's
output and the scalar.
"""

from __future__ import annotations

from sawbones.observe.deep import by_gradient
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.trace.operators import LOSSES, PASSING, RESHAPING

_HANDED_ON = PASSING | {"clamp", "clamp_min", "clamp_max", "clamp_", "nan_to_num"}
# Where the model ends: nothing behind a weighted operator belongs to the loss.
_MODEL = frozenset(
    {
        "layer_norm",
        "batch_norm",
        "group_norm",
        "embedding",
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "dropout",
        "rms_norm",
        "lstm_cell",
        "gru_cell",
        "max_pool2d",
        "adaptive_avg_pool2d",
    }
)


def _is_boundary(op: RawOp) -> bool:
    return (
        op.name in LOSSES
        or op.name in _MODEL
        or op.silent
        or any(r.is_parameter and len(r.shape) > 0 for r in op.inputs)
    )


def find_handwritten(graph: OpGraph, root: Ref) -> list[Found]:
    # Weight penalties start at parameters and stop there; library losses are already known and not
    # looked behind.
    behind = graph.behind(root, None, 400, lambda op: () if _is_boundary(op) else op.inputs)
    region = sorted((op for op in behind if not _is_boundary(op)), key=lambda op: -op.index)
    if not region:
        return []
    inside = {op.index for op in region}
    found = _from_log_softmax(graph, region, inside, root) or _from_logsumexp(graph, region, root)
    if not found:
        found = by_gradient.find(region, root)
    if not found:
        found = _from_log_of_probabilities(graph, region, root)
    if not found:
        found = _from_differences(graph, region, root)
    return found


def _loss(
    op: RawOp, fn: str, scores: Ref, target: Ref | None, root: Ref, class_dim: int | None = None
) -> Found:
    return Found(op, fn, scores, target, root, class_dim, by_hand=True)


def _normal(dim: object, ref: Ref) -> int:
    size = len(ref.shape)
    return dim % size if isinstance(dim, int) and size else max(size - 1, 0)


def _from_log_softmax(
    graph: OpGraph, region: list[RawOp], inside: set[int], root: Ref
) -> list[Found]:
    found = []
    for op in region:
        maker, fn = op, "cross_entropy"
        if op.name == "log" and op.inputs:
            _, source = graph.origin(op.inputs[0], op.index, _HANDED_ON)
            while (
                source is not None and source.name == "add" and len(source.inputs) == 1
            ):  # log(p + eps)
                _, source = graph.origin(source.inputs[0], source.index, _HANDED_ON)
            if source is None or source.name != "softmax":
                continue
            maker = source
        elif op.name != "log_softmax":
            continue
        scores = maker.inputs[0]
        target, place = _picked(graph, op.outputs[0], inside)
        if target is not None and place is not None:
            loss = _loss(place, fn, scores, target, root, _normal(maker.args.get("dim"), scores))
            _soft_rows(loss, place)
            found.append(loss)
    return found


def _soft_rows(loss: Found, place: RawOp) -> None:
    """Smoothed or mixed targets that multiply the log-probabilities: what a row of them sums to."""
    dense = next(
        (r for r in place.inputs if not r.requires_grad and r.shape == loss.input.shape), None
    )
    values = dense.tensor() if dense is not None and place.name == "mul" else None
    if values is None or not values.is_floating_point() or loss.class_dim is None:
        return
    sums = values.sum(loss.class_dim)
    soft = bool((values >= 0).all()) and bool((values != values.round()).any())
    if soft:
        loss.facts["target_row_sum"] = [float(sums.min()), float(sums.max())]
        loss.facts["target_soft_at"] = place.site


def _from_logsumexp(graph: OpGraph, region: list[RawOp], root: Ref) -> list[Found]:
    for op in region:
        if op.name != "logsumexp":
            continue
        scores = op.inputs[0]
        target, place = _picked(graph, scores, None)
        if target is not None and place is not None:
            return [
                _loss(
                    place,
                    "cross_entropy",
                    scores,
                    target,
                    root,
                    _normal(op.args.get("dim"), scores),
                )
            ]
    return []


def _picked(graph: OpGraph, logs: Ref, inside: set[int] | None) -> tuple[Ref | None, RawOp | None]:
    """The integers (or one-hot rows) by which the right class is taken out of the log
    probabilities.
    """
    waiting: list[Ref] = [logs]
    seen: set[int] = set()
    while waiting and len(seen) < 60:
        ref = waiting.pop()
        for user in graph.users(ref):
            if user.index in seen or (inside is not None and user.index not in inside):
                continue
            seen.add(user.index)
            if user.name in ("gather", "take_along_dim"):
                index = user.arguments.get("index") or user.arguments.get("indices")
                if index is not None:
                    return _squeezed(graph, index, user), user
            if user.name == "__getitem__":
                integers = [
                    r
                    for key, r in user.arguments.items()
                    if key.startswith("index") and r.dtype != "bool"
                ]
                if integers:
                    return integers[-1], user
            if user.name == "mul" and len(user.inputs) == 2:
                other = next((r for r in user.inputs if r.id != ref.id), None)
                if other is not None and other.shape == ref.shape and not other.requires_grad:
                    return _behind_one_hot(graph, other, user), user
            if user.name in _HANDED_ON | {"neg", "mul", "div"} and user.outputs:
                waiting.append(user.outputs[0])
    return None, None


def _squeezed(graph: OpGraph, index: Ref, user: RawOp) -> Ref:
    """gather wants one dimension more than the target has: the form before `unsqueeze`."""
    if index.shape and index.shape[-1] == 1:
        for form, _ in graph.way(index, user.index, RESHAPING):
            if form.shape == index.shape[:-1]:
                return form
    return index


def _behind_one_hot(graph: OpGraph, dense: Ref, user: RawOp) -> Ref:
    _, maker = graph.origin(dense, user.index)
    if maker is not None and maker.name == "one_hot" and maker.inputs:
        return maker.inputs[0]
    if maker is not None and maker.name in ("scatter_", "scatter") and "index" in maker.arguments:
        return _squeezed(graph, maker.arguments["index"], maker)
    return dense


def _from_log_of_probabilities(graph: OpGraph, region: list[RawOp], root: Ref) -> list[Found]:
    """Binary cross-entropy by hand: log(p) and log(1 - p), or log-sigmoid of a score and of its
    negative.
    """
    logs = [
        op for op in region if op.name in ("log", "logsigmoid", "softplus", "log1p") and op.inputs
    ]
    for op in logs:
        for user in _near_users(graph, op.outputs[0]):
            if user.name != "mul" or len(user.inputs) != 2:
                continue
            target = next((r for r in user.inputs if not r.requires_grad), None)
            if target is None:
                continue
            # log(1 - p) and log(p + eps) are about p; a squeeze further back is not undone, the
            # target has the later shape.
            scores = _same_shape(
                graph,
                op.inputs[0],
                op.index,
                frozenset({"add", "rsub", "neg", "clamp", "clamp_min"}),
            )
            target = _same_shape(graph, target, user.index, frozenset({"rsub", "float", "to"}))
            fn = (
                "binary_cross_entropy"
                if op.name in ("log", "log1p")
                else "binary_cross_entropy_with_logits"
            )
            return [_loss(user, fn, scores, target, root)]
    return []


def _same_shape(graph: OpGraph, ref: Ref, before: int, through: frozenset[str]) -> Ref:
    return [form for form, _ in graph.way(ref, before, through) if form.shape == ref.shape][-1]


def _near_users(graph: OpGraph, ref: Ref) -> list[RawOp]:
    users = graph.users(ref)
    return [
        *users,
        *(
            further
            for op in users
            if op.name in ("neg", "clamp", "squeeze") and op.outputs
            for further in graph.users(op.outputs[0])
        ),
    ]


def _from_differences(graph: OpGraph, region: list[RawOp], root: Ref) -> list[Found]:
    """Squared or absolute differences between something that learns and something that does not."""
    found = []
    for op in region:
        if op.name not in ("sub", "rsub", "sub_") or len(op.inputs) != 2 or not op.outputs:
            continue
        fn = next(
            (
                kind
                for user in graph.users(op.outputs[0])
                if (kind := _distance(user, op.outputs[0]))
            ),
            None,
        )
        if fn is None:
            continue
        scores, target = op.inputs
        if target.requires_grad and not scores.requires_grad:
            scores, target = target, scores
        found.append(_loss(op, fn, scores, target, root))
    return found[:4]


def _distance(user: RawOp, difference: Ref) -> str | None:
    if user.name in ("square", "square_") or (
        user.name in ("pow", "pow_") and user.args.get("exponent", user.args.get("other")) == 2
    ):
        return "mse_loss"
    if (
        user.name == "mul"
        and len(user.inputs) == 2
        and all(r.id == difference.id for r in user.inputs)
    ):
        return "mse_loss"
    return "l1_loss" if user.name == "abs" else None
