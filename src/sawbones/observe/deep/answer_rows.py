"""Whether the answers of a batch stand in the order of its examples, by a copy of the model."""

from __future__ import annotations

import copy
from typing import Any

import torch

from sawbones.observe.deep.drawn import rows_taken
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.modules import ModuleCall
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.observe.random_streams import streams_put_back
from sawbones.properties.draws import NothingDrawn
from sawbones.properties.inputs import answer_of, as_it_was, mapped, tensors_in
from sawbones.properties.rows import FEWEST, moved_by_another, order_of_answers
from sawbones.trace.operators import PASSING

_MAX_PARAMETERS = 200_000_000
_REORDERING = frozenset({"stack", "cat", "gather", "sort", "take_along_dim", "scatter", "flip"})


def probe(call: ModuleCall, loss: Found, graph: OpGraph) -> dict[str, Any] | None:
    """`others`: how far an example moves the answers for the others; with the order of the answers
    where they tell the examples apart, and where neither answers nor targets are put in another
    order on the way to the loss.
    """
    made, shape = answer_of(call.output), loss.target.shape if loss.target is not None else ()
    num = made.shape[0] if made is not None and made.dim() else 0
    given = [t for t in tensors_in((call.args, call.kwargs)) if t.dim() and t.shape[0] == num]
    if made is None or num < FEWEST or not given:
        return None
    by_place = len(shape) == 1 and not shape[0] % num and made.dim() > 2  # batch and time are one
    if shape[:1] != (num,) and not by_place:
        return None
    if sum(p.numel() for p in call.module.parameters()) > _MAX_PARAMETERS:
        return None
    model = copy.deepcopy(call.module).eval()

    def answer(order: torch.Tensor) -> torch.Tensor:
        def chosen(tensor: torch.Tensor) -> torch.Tensor:
            ours = tensor.dim() > 0 and tensor.shape[0] == num
            return tensor.detach()[order.to(tensor.device)] if ours else tensor.detach().clone()

        args, kwargs = mapped((call.args, call.kwargs), chosen)
        with streams_put_back(), NothingDrawn():
            found = answer_of(as_it_was(model)(*args, **kwargs))
        assert found is not None  # it answered this call
        return found.float().cpu()

    record: dict[str, Any] = {"others": moved_by_another(answer, num)}
    told = by_place or _returns_order(call.output, num) or _is_put_in_order(graph, loss)
    order = None if told else order_of_answers(answer, num)
    if order is not None:
        record |= {
            "examples": order.examples,
            "moved_along": order.moved_along,
            "found_again": order.found_again,
            "sites": [op.site for op in graph.ops if op.module is not None and _reorders(op)][:4],
        }
    return record


def _returns_order(output: Any, num: int) -> bool:
    """The order of the rows is among what the model returns, for the caller to use."""
    whole = (t for t in tensors_in(output) if t.shape == (num,) and not t.is_floating_point())
    return any(sorted(listed(t)) == list(range(num)) for t in whole)


def _reorders(op: RawOp) -> bool:
    """It takes every row once, in another order: not some rows out of a table."""
    taken = rows_taken(op)
    places = listed(taken[1]) if taken is not None else []
    return places != sorted(places) and sorted(places) == list(range(len(places)))


def _is_put_in_order(graph: OpGraph, loss: Found) -> bool:
    """Whether targets, or answers behind the model, are put in another order."""
    return any(_is_moved(graph, ref, loss.op.index) for ref in (loss.target, loss.input) if ref)


def _is_moved(graph: OpGraph, ref: Ref, before: int) -> bool:
    inside = False
    for _, op in graph.way(ref, before, PASSING):
        if op is None:
            return False
        inside = inside or op.module is not None
        if not inside and (op.name in _REORDERING or _reorders(op)):
            return True
    # targets that a model has made or passed on are its own business
    return inside and ref is not None and not ref.requires_grad
