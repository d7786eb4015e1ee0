"""Changes nothing of the run: measures gradients of the user's own autograd functions and modules
against finite differences.

Each class once, at its first call with gradients, by `properties/gradient.py`. Modules are measured
innermost first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import nn

from sawbones.observe.deep import DeepObserver
from sawbones.observe.sites import is_user_file
from sawbones.properties.gradient import compare
from sawbones.properties.inputs import tensors_in
from sawbones.schema.one_off import OwnGradient


def install(recorder: Any) -> None:
    rows: list[OwnGradient] = []
    recorder.facts["gradient_check"] = rows
    seen: set[type] = set()
    real_call = nn.Module.__call__
    of_torch = torch.autograd.Function.__dict__["apply"]

    def real_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return of_torch.__get__(None, cls)(*args, **kwargs)  # built in or not

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
        file = recorder.sites.shown(code.co_filename)
        row = OwnGradient(cls.__name__, file, code.co_firstlineno, kind)
        DeepObserver.busy = True
        try:
            with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
                row = replace(row, **asdict(compare(function, given, held)))
        except Exception as error:
            row = replace(row, failed=f"{type(error).__name__}: {error}"[:200])
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
        asks = any(tensor.requires_grad for tensor in tensors_in((args, kwargs)))
        if asks and is_due(cls, cls.forward):
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
