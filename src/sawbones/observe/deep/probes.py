"""Property tests on a copy of the model with the captured call: order, causality, other examples,
padding, training mode.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from sawbones.observe.deep import answer_rows, forecast, windows
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.modules import ModuleCall
from sawbones.observe.deep.roles import Source
from sawbones.properties.dependence import (
    Moved,
    by_later_positions,
    by_one_example,
    by_order,
    by_padding,
)
from sawbones.properties.inputs import (
    answer_of,
    as_it_was,
    mapped,
    one_example,
    other_values,
    replaced,
    tensors_in,
)

_MAX_PARAMETERS = 200_000_000


class DoesNotApply(Exception):
    """The outputs are not those that a property speaks of."""


class Patient:
    """A deep copy of the model, called with the captured arguments, one token input replaced at a
    time.
    """

    def __init__(self, call: ModuleCall, source: Source) -> None:
        self.model = copy.deepcopy(call.module)
        self._inputs = mapped((call.args, call.kwargs), lambda t: t.detach().clone())
        self._source = source
        self._tokens = _find_tokens(self._inputs, source)

    def run(self, rows: torch.Tensor | None = None, training: bool = False) -> torch.Tensor | None:
        """The model's largest float output, for other tokens given as (batch, time)."""
        self.model.train(training)
        inputs = self._inputs
        if rows is not None and self._tokens is not None:
            ids = rows.t() if self._source.time_dim == 0 else rows
            fresh = ids.to(self._tokens.device, self._tokens.dtype).reshape(self._tokens.shape)
            inputs = replaced(inputs, self._tokens, fresh)
        return self._called(inputs)

    def grid(self, rows: torch.Tensor) -> torch.Tensor:
        """The same as (batch, time, features)."""
        result = self.run(rows)
        grid = _grid(result, self._source) if result is not None else None
        if grid is None:
            raise DoesNotApply
        return grid

    def _called(self, inputs: Any) -> torch.Tensor | None:
        args, kwargs = inputs
        found = answer_of(as_it_was(self.model)(*args, **kwargs), fewest_dims=2)
        return None if found is None else found.float()

    def trimmed(self, example: int, kept: int) -> torch.Tensor | None:
        """The answer for one example alone, without the padding behind it."""
        rows = self._source.rows
        given = [t for t in tensors_in(self._inputs) if t.dim() == 2]
        integers = [t for t in given if not t.is_floating_point() and t.dtype != torch.bool]
        if sum(rows.shape[1] in t.shape for t in integers if int(t.max()) > 1) != 1:
            return None  # another sequence of the same length would be cut with it
        self.model.eval()
        return self._called(one_example(self._inputs, example, rows, torch.arange(kept)))


def _find_tokens(value: Any, source: Source) -> torch.Tensor | None:
    for tensor in tensors_in(value):
        if not tensor.is_floating_point() and tensor.dim() == 2:
            ids = tensor.detach().cpu().long()
            if ids.shape == source.index.shape and torch.equal(ids, source.index):
                return tensor
    return None


def run(call: ModuleCall, sources: list[Source], preferred: Source | None = None) -> dict[str, Any]:
    """Every probe that applies, each with its own numbers; a probe that fails says why."""
    if sum(p.numel() for p in call.module.parameters()) > _MAX_PARAMETERS:
        return {"skipped": "the model is too large to copy"}
    tokens = next(
        (s for s in sorted(sources, key=lambda s: s is not preferred) if _is_given(call, s)), None
    )
    results: dict[str, Any] = {}
    if tokens is None:
        if call.args:
            _try(results, "eval_gap", lambda: _eval_gap(_plain_patient(call)))
        return results
    results["source"] = sources.index(tokens)
    patient = Patient(call, tokens)
    reference = patient.run(tokens.rows)
    if reference is None or tokens.rows.shape[1] < 3:
        return results
    if (base := _grid(reference, tokens)) is not None:
        _try(results, "permutation", lambda: _permutation(patient, tokens, base))
        _try(results, "causality", lambda: _causality(patient, tokens, base))
    _try(results, "batch", lambda: _batch(patient, tokens, reference))
    _try(results, "padding", lambda: _padding(patient, tokens, reference))
    _try(results, "eval_gap", lambda: _eval_gap(patient))
    return results


def of_loss(
    call: ModuleCall, loss: Found | None, graph: OpGraph
) -> dict[str, Callable[[], dict[str, Any] | None]]:
    """Those that need to know what the loss was given."""
    if loss is None:
        return {}
    return {
        "forecast": partial(forecast.probe, call, loss),
        "window": partial(windows.overlap, call, loss),
        "rows": partial(answer_rows.probe, call, loss, graph),
    }


def _is_given(call: ModuleCall, source: Source) -> bool:
    return (
        source.role == "tokens"
        and source.index.dim() == 2
        and _find_tokens((call.args, call.kwargs), source) is not None
    )


def _plain_patient(call: ModuleCall) -> Patient:
    empty = Source.__new__(Source)
    empty.index, empty.role, empty.time_dim = torch.zeros(0, dtype=torch.long), "tokens", 1
    return Patient(call, empty)


def _try(results: dict[str, Any], name: str, probe: Callable[[], dict[str, Any] | None]) -> None:
    try:
        found = probe()
        if found is not None:
            results[name] = found
    except DoesNotApply:
        return
    except Exception as error:
        results[name] = {"failed": f"{type(error).__name__}: {error}"[:200]}


def _grid(output: torch.Tensor, source: Source) -> torch.Tensor | None:
    """The output as (batch, time, features), None when it is not per position."""
    rows = source.rows
    if output.dim() < 3 or output.shape[:2].numel() != rows.numel():
        return None
    if tuple(output.shape[:2]) == tuple(source.index.shape):
        return output.transpose(0, 1) if source.time_dim == 0 else output
    return output if tuple(output.shape[:2]) == tuple(rows.shape) else None


def _shuffled(length: int) -> torch.Tensor:
    """A fixed permutation without fixed points, made without a random stream."""
    step = next(
        s
        for s in range(max(2, length // 3), length + 2)
        if torch.gcd(torch.tensor(s), torch.tensor(length)) == 1
    )
    return (torch.arange(length) * step + 1) % length


def _permutation(patient: Patient, source: Source, base: torch.Tensor) -> dict[str, Any]:
    """Distance of output(permuted input) from permuted output: 0 when the order of the input
    carries nothing.
    """
    rows = source.rows
    moved = by_order(patient.grid, rows, base, _shuffled(rows.shape[1]))
    return {"distance": moved.relative(), "change": Moved(moved.now, base).relative()}


def _other(source: Source) -> torch.Tensor:
    padding = source.rows == source.pad_id if source.pad_id is not None else None
    return other_values(source.rows, padding, max(source.num_embeddings, 2))


def _causality(patient: Patient, source: Source, base: torch.Tensor) -> dict[str, Any]:
    """How much outputs up to t change when every token after t does."""
    cut = source.rows.shape[1] // 2
    before, after = by_later_positions(patient.grid, source.rows, _other(source), base, cut)
    return {"cut": cut, "before": before.relative(), "after": after.relative()}


def _batch(patient: Patient, source: Source, reference: torch.Tensor) -> dict[str, Any] | None:
    """How much the other examples' outputs change when one example does."""
    rows, base = source.rows, _grid(reference, source)
    if rows.shape[0] < 2 or (base is None and reference.shape[0] != rows.shape[0]):
        return None

    def answer(given: torch.Tensor) -> torch.Tensor:
        result = patient.run(given)
        if result is None or result.shape != reference.shape:
            raise DoesNotApply
        grid = result if base is None else _grid(result, source)
        if grid is None:
            raise DoesNotApply
        return grid

    others, own = by_one_example(
        answer, rows, _other(source), reference if base is None else base, rows.shape[0] - 1
    )
    return {"others": others.relative(), "own": own.relative()}


def _padding(patient: Patient, source: Source, reference: torch.Tensor) -> dict[str, Any] | None:
    """How much a padded example's answer on real tokens changes when it comes without its padding,
    alone.
    """
    padding = source.padding
    if padding is None or source.pad_sides.get(source.time_dim) != "right":
        return None
    batch, length = source.rows.shape
    lengths = (~padding).sum(1)
    example = int(torch.where(lengths > 0, lengths, torch.full_like(lengths, length)).argmin())
    kept = int(lengths[example])
    # Sizes tell batch from time here; where they do not, nothing can be cut safely.
    if batch == length or batch < 2 or kept in (0, length) or bool(padding[example, :kept].any()):
        return None
    result = patient.trimmed(example, kept)
    if result is None:
        return None
    positions = torch.arange(kept)
    grid, base = _trimmed_grid(result, kept), _grid(reference, source)
    if grid is not None and base is not None:
        moved = by_padding(grid, base, example, positions)
    elif reference.shape[0] == batch and result.shape == (1, *reference.shape[1:]):
        moved = by_padding(result, reference, example, None)
    else:
        return None
    return {"real": moved.relative(), "cut": length - kept}


def _trimmed_grid(result: torch.Tensor, kept: int) -> torch.Tensor | None:
    """Outputs of one example as (1, time, features), None when they are not per position."""
    if result.dim() < 3 or result.shape[:2].numel() != kept:
        return None
    return result if result.shape[0] == 1 else result.transpose(0, 1)


def _eval_gap(patient: Patient) -> dict[str, Any] | None:
    """Distance of the outputs in training mode from those in evaluation mode, on the same batch."""
    calm = patient.run()
    lively = patient.run(training=True)
    if calm is None or lively is None or calm.shape != lively.shape:
        return None
    norms = [m for m in patient.model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    drops = [
        m
        for m in patient.model.modules()
        if isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0
    ]
    return {
        "distance": Moved(lively, calm).relative(),
        "batchnorm": len(norms),
        "dropout": len(drops),
    }
