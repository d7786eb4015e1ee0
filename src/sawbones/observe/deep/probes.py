"""Property tests on a copy of the model with the captured call: order, causality, other examples,
padding, training mode.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from sawbones.observe.deep.modules import ModuleCall
from sawbones.observe.deep.roles import Source
from sawbones.observe.deep.trace import tensors_in

_MAX_PARAMETERS = 200_000_000


class Patient:
    """A deep copy of the model, called with the captured arguments, one token input replaced at a
    time.
    """

    def __init__(self, call: ModuleCall, source: Source) -> None:
        self.model = copy.deepcopy(call.module)
        self._args, self._kwargs = _detached(call.args), _detached(call.kwargs)
        self._source = source
        self._tokens = _find_tokens((self._args, self._kwargs), source)
        self.output_shape: tuple[int, ...] = ()

    @property
    def has_tokens(self) -> bool:
        return self._tokens is not None

    def run(self, rows: torch.Tensor | None = None, training: bool = False) -> torch.Tensor | None:
        """The model's largest float output, for other tokens given as (batch, time)."""
        self.model.train(training)
        args, kwargs = self._args, self._kwargs
        if rows is not None and self._tokens is not None:
            ids = rows.t() if self._source.time_dim == 0 else rows
            fresh = ids.to(self._tokens.device, self._tokens.dtype).reshape(self._tokens.shape)
            args, kwargs = (
                _swapped(args, self._tokens, fresh),
                _swapped(kwargs, self._tokens, fresh),
            )
        return _answer(self.model(*args, **kwargs))

    def trimmed(self, example: int, batch: int, length: int, kept: int) -> torch.Tensor | None:
        """The answer for one example alone, without the padding behind it."""
        given = [t for t in tensors_in((self._args, self._kwargs)) if t.dim() == 2]
        integers = [t for t in given if not t.is_floating_point() and t.dtype != torch.bool]
        if sum(length in t.shape for t in integers if int(t.max()) > 1) != 1:
            return None  # another sequence of the same length would be cut with it
        self.model.eval()
        args, kwargs = (
            _cut(value, example, batch, length, kept) for value in (self._args, self._kwargs)
        )
        return _answer(self.model(*args, **kwargs))


def _answer(result: Any) -> torch.Tensor | None:
    """The largest float tensor of what a model returned."""
    values = getattr(result, "logits", result)
    floats = [t for t in tensors_in(values) if t.is_floating_point() and t.dim() >= 2]
    return max(floats, key=lambda t: t.numel()).detach().float() if floats else None


def _cut(value: Any, example: int, batch: int, length: int, kept: int) -> Any:
    """One example of every tensor, up to its real length; sizes say which dimension is which."""
    if isinstance(value, torch.Tensor):
        batch_dim = next((d for d, size in enumerate(value.shape[:2]) if size == batch), None)
        for dim, size in enumerate(value.shape):
            if size == length and dim < 4:
                value = value.narrow(dim, 0, kept)
        return value.narrow(batch_dim, example, 1) if batch_dim is not None else value
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_cut(v, example, batch, length, kept) for v in value)
    if isinstance(value, list):
        return [_cut(v, example, batch, length, kept) for v in value]
    return (
        {k: _cut(v, example, batch, length, kept) for k, v in value.items()}
        if type(value) is dict
        else value
    )


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_detached(v) for v in value)
    if isinstance(value, list):
        return [_detached(v) for v in value]
    return {k: _detached(v) for k, v in value.items()} if type(value) is dict else value


def _swapped(value: Any, old: torch.Tensor, new: torch.Tensor) -> Any:
    if value is old:
        return new
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_swapped(v, old, new) for v in value)
    if isinstance(value, list):
        return [_swapped(v, old, new) for v in value]
    return {k: _swapped(v, old, new) for k, v in value.items()} if type(value) is dict else value


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
    grid = _grid(reference, tokens)
    if grid is not None:
        _try(results, "permutation", lambda: _permutation(patient, tokens, reference))
        _try(results, "causality", lambda: _causality(patient, tokens, reference))
    _try(results, "batch", lambda: _batch(patient, tokens, reference))
    _try(results, "padding", lambda: _padding(patient, tokens, reference))
    _try(results, "eval_gap", lambda: _eval_gap(patient))
    return results


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


def _relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / (b.norm() + 1e-12))


def _permutation(
    patient: Patient, source: Source, reference: torch.Tensor
) -> dict[str, Any] | None:
    """Distance of output(permuted input) from permuted output: 0 when the order of the input
    carries nothing.
    """
    rows = source.rows
    order = _shuffled(rows.shape[1])
    result = patient.run(rows[:, order])
    grid, base = (_grid(result, source) if result is not None else None), _grid(reference, source)
    if grid is None or base is None:
        return None
    expected = base[:, order.to(base.device)]
    # The same token in all places: without positions every position then answers the same.
    same = patient.run(rows[:, :1].expand_as(rows).contiguous())
    flat = _grid(same, source) if same is not None else None
    spread = (
        float(flat.std(dim=1, correction=0).mean() / (flat.std(correction=0) + 1e-12))
        if flat is not None
        else None
    )
    batch_spread = None
    if flat is not None and rows.shape[0] > 1:
        one = patient.run(rows[:1, :1].expand_as(rows).contiguous())
        ones = _grid(one, source) if one is not None else None
        if ones is not None:
            batch_spread = float(
                ones.std(dim=0, correction=0).mean() / (ones.std(correction=0) + 1e-12)
            )
    return {
        "distance": _relative(grid, expected),
        "change": _relative(grid, base),
        "position_spread": spread,
        "batch_spread": batch_spread,
    }


def _other(rows: torch.Tensor, source: Source) -> torch.Tensor:
    """Other valid tokens in the same places: the next id that occurs in the batch."""
    vocabulary: torch.Tensor = rows.unique()
    if source.pad_id is not None:
        vocabulary = vocabulary[vocabulary != source.pad_id]
    if vocabulary.numel() < 2:
        return (rows + 1) % max(source.num_embeddings, 2)
    place = torch.searchsorted(vocabulary, rows.contiguous()).clamp(max=vocabulary.numel() - 1)
    return vocabulary[(place + 1) % vocabulary.numel()]


def _causality(patient: Patient, source: Source, reference: torch.Tensor) -> dict[str, Any] | None:
    """How much outputs up to t change when every token after t does."""
    rows = source.rows
    cut = rows.shape[1] // 2
    changed = rows.clone()
    tail = _other(rows[:, cut:], source)
    changed[:, cut:] = (
        tail
        if source.pad_id is None
        else torch.where(rows[:, cut:] == source.pad_id, rows[:, cut:], tail)
    )
    result = patient.run(changed)
    grid, base = (_grid(result, source) if result is not None else None), _grid(reference, source)
    if grid is None or base is None:
        return None
    return {
        "cut": cut,
        "before": _relative(grid[:, :cut], base[:, :cut]),
        "after": _relative(grid[:, cut:], base[:, cut:]),
    }


def _batch(patient: Patient, source: Source, reference: torch.Tensor) -> dict[str, Any] | None:
    """How much the other examples' outputs change when one example does."""
    rows = source.rows
    if rows.shape[0] < 2:
        return None
    changed = rows.clone()
    changed[-1] = _other(rows[-1:], source)[0]
    result = patient.run(changed)
    if result is None or result.shape != reference.shape:
        return None
    grid, base = _grid(result, source), _grid(reference, source)
    if grid is None or base is None:
        if result.shape[0] != rows.shape[0]:
            return None
        grid, base = result, reference
    return {"others": _relative(grid[:-1], base[:-1]), "own": _relative(grid[-1:], base[-1:])}


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
    result = patient.trimmed(example, batch, length, kept)
    grid, base = _trimmed_grid(result, kept, source), _grid(reference, source)
    if grid is not None and base is not None:
        return {"real": _relative(grid, base[example, :kept]), "cut": length - kept}
    if (
        result is None
        or result.shape[0] != 1
        or reference.shape[0] != batch
        or result.shape[1:] != reference.shape[1:]
    ):
        return None
    return {"real": _relative(result[0], reference[example]), "cut": length - kept}


def _trimmed_grid(result: torch.Tensor | None, kept: int, source: Source) -> torch.Tensor | None:
    if result is None or result.dim() < 3 or result.shape[:2].numel() != kept:
        return None
    return result[0] if result.shape[0] == 1 and result.shape[1] == kept else result[:, 0]


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
    return {"distance": _relative(lively, calm), "batchnorm": len(norms), "dropout": len(drops)}
