"""torch.autograd.Function.apply, under `diagnose`: every backward that the user wrote is compared
once with differences of its forward, at its first call with gradients.
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
from sawbones.schema.one_off import OwnGradient

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.probe:
        return
    rows: list[OwnGradient] = []
    seen: set[type] = set()

    def make(original: Any) -> Any:
        real = original.__func__

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            result = real(cls, *args, **kwargs)
            if cls not in seen and torch.is_grad_enabled() and recorder.is_host():
                seen.add(cls)
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
        rows.append(row)
        recorder.facts["own_gradients"] = rows

    patches.replace(torch.autograd.Function, "apply", make)


def _def_line(code: CodeType) -> int:
    """Behind the decorators: a code object begins at the first of them."""
    line = code.co_firstlineno
    while linecache.getline(code.co_filename, line).lstrip().startswith("@"):
        line += 1
    return line


def _is_users(cls: Any) -> bool:
    code = getattr(inspect.unwrap(cls.backward), "__code__", None)
    return code is not None and is_user_file(code.co_filename)
