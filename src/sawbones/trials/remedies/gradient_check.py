"""Changes nothing of the run: measures gradients of the user's own autograd functions and modules
against finite differences.

Each class once, at its first call with gradients: a float64 copy in evaluation mode, moved along
one fixed direction through its inputs and parameters at once, so the cost is a few calls whatever
the size. Modules are measured innermost first.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from sawbones.observe.deep import DeepObserver
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.sites import is_user_file
from sawbones.oracles.gradcheck import check_gradient

STEP = 1e-6
_MAX_NUMEL = 20_000_000


def install(recorder: Any) -> None:
    rows: list[dict[str, Any]] = []
    recorder.facts["gradient_check"] = rows
    seen: set[type] = set()
    real_call = nn.Module.__call__
    real_apply = torch.autograd.Function.__dict__["apply"].__func__

    def is_due(cls: type, method: Any) -> bool:
        if (
            cls in seen
            or DeepObserver.busy
            or not torch.is_grad_enabled()
            or not recorder.is_host()
        ):
            return False
        code = getattr(inspect.unwrap(method), "__code__", None)
        return code is not None and is_user_file(code.co_filename)

    def measure(
        cls: type,
        kind: str,
        method: Any,
        function: Callable[..., Any],
        given: Any,
        held: nn.Module | None,
    ) -> None:
        code = inspect.unwrap(method).__code__
        row: dict[str, Any] = {
            "cls": cls.__name__,
            "kind": kind,
            "file": recorder.sites.shown(code.co_filename),
        }
        row["line"] = code.co_firstlineno
        DeepObserver.busy = True
        try:
            with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
                row |= _compare(function, given, held)
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"[:200]
        finally:
            DeepObserver.busy = False
        rows.append(row)

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = real_call(self, *args, **kwargs)
        if is_due(type(self), type(self).forward):
            seen.add(type(self))
            measure(type(self), "module", type(self).forward, real_call, (args, kwargs), self)
        return result

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if is_due(cls, cls.forward):
            seen.add(cls)
            measure(
                cls,
                "function",
                cls.backward,
                lambda *a, **k: real_apply(cls, *a, **k),
                (args, kwargs),
                None,
            )
        return real_apply(cls, *args, **kwargs)

    nn.Module.__call__ = __call__  # type: ignore[method-assign]
    torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment]


def _compare(function: Callable[..., Any], given: Any, held: nn.Module | None) -> dict[str, Any]:
    """The slope along one direction: as autograd gives it, and as the function has it."""
    generator = torch.Generator().manual_seed(0)
    model = copy.deepcopy(held).double().eval() if held is not None else None
    point = _wide(given)
    inputs = [t for _, t in tensors_in(point) if t.is_floating_point()]
    moving = [
        *inputs,
        *([p for p in model.parameters() if p.requires_grad] if model is not None else []),
    ]
    if not moving or sum(t.numel() for t in moving) > _MAX_NUMEL:
        return {"failed": "nothing to vary, or too much"}
    starts = [t.detach().clone() for t in moving]
    directions = [
        torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device) for t in moving
    ]
    weights: list[torch.Tensor] = []

    def output() -> torch.Tensor:
        args, kwargs = point
        result = (
            function(model, *args, **kwargs) if model is not None else function(*args, **kwargs)
        )
        found = [t for _, t in tensors_in(result) if t.is_floating_point()]
        if not weights:
            weights.extend(
                torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device)
                for t in found
            )
        return torch.stack(
            [(t.double() * w).sum() for t, w in zip(found, weights, strict=True)]
        ).sum()

    for tensor in moving:
        tensor.requires_grad_(True)
    with torch.enable_grad():
        gradients = torch.autograd.grad(output(), moving, allow_unused=True)
    slope = sum(
        float((g * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None
    )

    def moved(t: Any) -> Any:
        with torch.no_grad():
            for tensor, start, direction in zip(moving, starts, directions, strict=True):
                tensor.copy_(start + float(t[0]) * direction)
            return output().cpu().numpy().reshape(1)

    found = check_gradient(moved, [[slope]], [[0.0]], upstream=[1.0], step=STEP)
    return {
        "error": found.max_relative_error,
        "autograd": found.analytic,
        "differences": found.numeric,
        "kink": found.kink,
    }


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().double().clone() if value.is_floating_point() else value.detach()
    if type(value) in (tuple, list):
        return type(value)(_wide(v) for v in value)
    return {k: _wide(v) for k, v in value.items()} if type(value) is dict else value
