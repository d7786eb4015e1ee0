"""torch.autograd.Function.apply, under `diagnose`: every backward that the user wrote is compared
with differences of its forward, at its first call with gradients, and again where an input asks for
a gradient that was a constant before: a layer's input is data in the first layer only.
"""

from __future__ import annotations

import inspect
import linecache
from dataclasses import asdict, replace
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.deep import DeepObserver
from sawbones.observe.deep.guard import untouched
from sawbones.observe.patches import Patches
from sawbones.observe.sites import is_user_file
from sawbones.observe.tracing import is_tracing
from sawbones.properties.gradient import CannotVary, compare
from sawbones.properties.inputs import tensors_in
from sawbones.schema.one_off import OwnGradient

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_NOWHERE: frozenset[int] = frozenset()


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.probe:
        return
    rows: dict[type, OwnGradient] = {}
    seen: dict[type, set[int]] = {}  # places of inputs whose gradient was compared

    def make(original: Any) -> Any:
        def real(cls: Any, *args: Any, **kwargs: Any) -> Any:
            # of any kind of class method: torch 2.15 made it a built-in one, without a function
            return original.__get__(None, cls)(*args, **kwargs)

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            result = real(cls, *args, **kwargs)
            if torch.is_grad_enabled() and recorder.is_host():
                asked = _asked(args, kwargs)
                if not asked <= seen.get(cls, _NOWHERE):
                    seen.setdefault(cls, set()).update(asked)
                    if not is_tracing() and _is_users(cls):
                        recorder.guard("deep", measure, cls, real, args, kwargs)
            return result

        return classmethod(apply)

    def measure(cls: Any, real: Any, args: Any, kwargs: Any) -> None:
        code = inspect.unwrap(cls.backward).__code__
        line = _def_line(code)
        text = linecache.getline(code.co_filename, line).strip()[:200]
        row = OwnGradient(cls.__name__, recorder.sites.shown(code.co_filename), line, code=text)
        DeepObserver.busy = True  # what the copies do is no event of the loop's
        try:
            with untouched(()):
                slopes = compare(lambda *a, **k: real(cls, *a, **k), (args, kwargs), None)
            row = replace(row, **asdict(slopes))
        except CannotVary as why:
            row = replace(row, failed=str(why))
        except Exception as error:  # the user's own forward may refuse another dtype
            row = replace(row, failed=f"{type(error).__name__}: {error}"[:200])
        finally:
            DeepObserver.busy = False
        rows[cls] = _worse(rows.get(cls), row)
        recorder.facts["own_gradients"] = list(rows.values())

    patches.replace(torch.autograd.Function, "apply", make)


def _asked(args: Any, kwargs: Any) -> set[int]:
    """The places of the tensors that ask for a gradient."""
    given = enumerate(tensors_in((args, kwargs)))
    return {place for place, tensor in given if tensor.requires_grad}


def _worse(before: OwnGradient | None, now: OwnGradient) -> OwnGradient:
    if before is None or before.error is None:
        return now
    return now if now.error is not None and now.error > before.error else before


def _def_line(code: CodeType) -> int:
    """Behind the decorators: a code object begins at the first of them."""
    line = code.co_firstlineno
    while linecache.getline(code.co_filename, line).lstrip().startswith("@"):
        line += 1
    return line


def _is_users(cls: Any) -> bool:
    code = getattr(inspect.unwrap(cls.backward), "__code__", None)
    return code is not None and is_user_file(code.co_filename)
