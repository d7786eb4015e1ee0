"""States of examples that the step before left and this one goes on from, although its examples are
others: a recurrence that is not begun anew.

What an earlier step made is known by its memory, which lives on for as long as the script keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from sawbones.observe.deep.drawn import rows_drawn
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.influence import output_dims
from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.measure import plain_below
from sawbones.observe.deep.modules import ModuleCall
from sawbones.observe.deep.shift import Frame, scores_form
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.properties.inputs import tensors_in
from sawbones.schema import Site

_MAX_ENTRIES = 64  # operators through which a state enters the graph of a step


@dataclass
class Left:
    """What the next step is compared with."""

    step: int
    batch: int  # number of the loader's batch
    memory: dict[int, StorageWeakRef] = field(default_factory=dict)  # of what was learned and made
    rows: dict[Site | None, torch.Tensor] = field(default_factory=dict)  # drawn, by line


@dataclass
class Given:
    number: int  # of the loader's batch
    batch: Sequence[torch.Tensor]  # where the loader shuffles
    calls: Sequence[ModuleCall]  # of models


def look(
    graph: OpGraph,
    before: Left | None,
    step: int,
    loss: Found,
    frame: Frame | None,
    given: Given,
) -> tuple[Left, dict[str, Any]]:
    """What this step leaves, and what it has taken up of the step before."""
    now = _leave(graph, step, given.number)
    follows = before is not None and before.step == step - 1
    return now, _find(graph, before, now, loss, frame, given) if before and follows else {}


def _leave(graph: OpGraph, step: int, batch: int) -> Left:
    left = Left(step, batch)
    for op in graph.ops:
        drawn = rows_drawn(op)
        if drawn is not None:
            left.rows[op.site] = drawn[1]
        for ref in op.outputs:
            tensor = ref.tensor() if ref.requires_grad and not ref.is_parameter else None
            if tensor is not None and tensor.dim() >= 2:
                storage = plain_below(tensor).untyped_storage()
                left.memory[storage.data_ptr()] = StorageWeakRef(storage)
    return left


def _find(
    graph: OpGraph, left: Left, now: Left, loss: Found, frame: Frame | None, given: Given
) -> dict[str, Any]:
    """A state of the step before that the scores of other examples go on from, row by row."""
    scores = scores_form(loss, frame, graph)
    output = scores.tensor()
    if output is None or not output.requires_grad:
        return {}
    behind = {op.index for op in graph.behind(scores)}
    share = _share_that_goes_on(graph, behind, left, now, loss, given.batch)
    if output.dim() == 0 or share is None:
        return {}
    dim = output_dims(output, frame, loss.class_dim if len(loss.input.shape) == 3 else None)[0]
    examples = output.shape[dim]
    for state, op in _from_before(graph, left):
        if examples < 2 or examples not in state.shape or not _recurs(graph, state):
            continue
        entries = _entries(graph, state, behind)
        if entries and _row_by_row(output, dim, entries):
            handed = [c.site for c in given.calls if _is_among(state, (c.args, c.kwargs))]
            sites = [*handed, op.site]
            facts = {"shape": state.shape, "sites": sites, "examples": examples, "go_on": share}
            return {"carried": facts}
    return {}


def _is_among(state: Ref, given: Any) -> bool:
    tensor = state.tensor()
    return any(one is tensor for one in tensors_in(given))


def _from_before(graph: OpGraph, left: Left) -> Iterator[tuple[Ref, RawOp]]:
    """Tensors that come from outside of this step and were learned and made in the one before."""
    seen: set[int] = set()
    for op in graph.ops:
        for ref in op.inputs:
            if ref.id in seen or ref.is_parameter or op.silent or len(ref.shape) < 2:
                continue
            seen.add(ref.id)
            tensor = ref.tensor()
            if tensor is None or graph.maker(ref, op.index) is not None:
                continue
            storage = plain_below(tensor).untyped_storage()
            known = left.memory.get(storage.data_ptr())
            if known is not None and not known.expired() and known == StorageWeakRef(storage):
                yield ref, op


def _share_that_goes_on(
    graph: OpGraph,
    behind: set[int],
    left: Left,
    now: Left,
    loss: Found,
    loaded: Sequence[torch.Tensor],
) -> float | None:
    """Of the examples that scores and targets were drawn for, those that lie as far behind the one
    before as most do; None where this step drew none, or the step before none at this line.
    """
    if now.batch != left.batch and loaded:
        given = (ref.tensor() for op in graph.ops if op.index in behind for ref in op.inputs)
        if any(tensor is one for tensor in given for one in loaded):
            return 0.0  # a sampler that draws at random
    if loss.target is None:
        return None
    asked = [rows_drawn(op) for op in graph.behind(loss.target, loss.op.index)]
    for op in graph.ops:
        drawn, before = rows_drawn(op), left.rows.get(op.site)
        if op.index not in behind or drawn is None or before is None:
            continue
        if not any(rows is not None and torch.equal(rows[1], drawn[1]) for rows in asked):
            continue  # rows of a table of codes, by the values of the data
        if len(before) == len(drawn[1]):
            steps = (drawn[1] - before).unique(return_counts=True)[1]
            return int(steps.max()) / len(before)
    return None


def _recurs(graph: OpGraph, state: Ref) -> bool:
    """Of it and of parameters a next state is made."""
    learned: set[int] = set()
    for op in graph.after([state]):
        if any(ref.is_parameter or ref.id in learned for ref in op.inputs):
            learned.update(ref.id for ref in op.outputs)
            if any(ref.shape == state.shape and ref.requires_grad for ref in op.outputs):
                return True
    return False


def _entries(graph: OpGraph, state: Ref, behind: set[int]) -> list[torch.Tensor]:
    """The first learned values made of a state; none of a state of zeros, which is a fresh one."""
    reached, found = {state.id}, []
    for op in graph.after([state]):
        if not any(ref.id in reached for ref in op.inputs):
            continue
        made = [ref for ref in op.outputs if ref.requires_grad]
        if not made:
            reached.update(ref.id for ref in op.outputs)
            continue
        given = [ref.tensor() for ref in op.inputs if ref.id in reached]
        if op.index in behind and any(t is not None and bool(t.any()) for t in given):
            found += [t for ref in made if (t := ref.tensor()) is not None and t.requires_grad]
        if len(found) >= _MAX_ENTRIES:
            break
    return found


def _row_by_row(output: torch.Tensor, dim: int, entries: list[torch.Tensor]) -> bool:
    """Whether the scores of an example depend on the state of the same row and of no other."""
    examples, depends = output.shape[dim], False
    for example in (0, examples - 1):
        seed = torch.zeros_like(output)
        spot = seed.select(dim, example)
        spot.copy_(torch.cos(torch.arange(spot.numel()) * 1.7 + 0.3).reshape(spot.shape))
        grads = torch.autograd.grad(output, entries, seed, retain_graph=True, allow_unused=True)
        for grad in (g for g in grads if g is not None and bool(g.any())):
            rows = [d for d in range(grad.dim()) if grad.shape[d] == examples]
            if not any(_only_at(grad, d, example) for d in rows):
                return False
            depends = True
    return depends


def _only_at(grad: torch.Tensor, dim: int, place: int) -> bool:
    rows = grad.detach().movedim(dim, 0).flatten(1).ne(0).any(1)
    return bool(rows[place]) and int(rows.sum()) == 1
