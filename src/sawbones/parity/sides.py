"""One side of a comparison: a model, a function, a list of steps, or a function without arguments
that makes one of these. Its outputs are kept after every step, and of models after every layer.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from sawbones.parity.golden import Array
from sawbones.schema import Site
from sawbones.schema.errors import SawbonesError

MAX_LAYERS = 400
ANSWER = "answer"


class SideNotUsable(SawbonesError):
    """What was named cannot be asked for answers."""


@dataclass(frozen=True)
class Stage:
    """What came out of one step or layer, for all rows."""

    name: str
    value: Array
    site: Site | None = None


@dataclass(frozen=True)
class Side:
    name: str
    steps: Sequence[tuple[str, Callable[..., Any]]]

    @property
    def modules(self) -> list[nn.Module]:
        return [m for _, step in self.steps if (m := _module_of(step)) is not None]

    @property
    def is_training(self) -> bool:
        return any(m.training for m in self.modules)


@dataclass
class _Kept:
    """Outputs of layers, batch by batch."""

    values: dict[str, list[Array]] = field(default_factory=dict)
    sites: dict[str, Site | None] = field(default_factory=dict)

    def add(self, name: str, value: Any, site: Site | None) -> None:
        plain = as_plain(value)
        if plain is not None:
            self.values.setdefault(name, []).append(plain)
            self.sites.setdefault(name, site)


def as_side(thing: Any, name: str) -> Side:
    """A factory is called once; a list of (name, step), or a dict of them, is applied in order."""
    made = thing
    if _is_factory(thing):
        made = thing()
    if isinstance(made, Mapping):
        steps = [(str(key), step) for key, step in made.items()]
    elif isinstance(made, (list, tuple)):
        steps = [
            (str(s[0]), s[1]) if isinstance(s, tuple) and len(s) == 2 else (_name_of(s, i), s)
            for i, s in enumerate(made)
        ]
    else:
        steps = [(_name_of(made, 0), made)]
    wrong = [key for key, step in steps if not callable(step) and not hasattr(step, "module")]
    if wrong or not steps:
        raise SideNotUsable(
            f"{name} gives {type(made).__name__}: a model, a function of rows, a list of "
            "(name, step), or a function without arguments that returns one of these was expected"
        )
    return Side(name, steps)


def _is_factory(thing: Any) -> bool:
    if isinstance(thing, nn.Module) or not callable(thing):
        return False
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return False
    return not any(p.default is p.empty and p.kind not in (p.VAR_KEYWORD,) for p in parameters)


def _name_of(step: Any, number: int) -> str:
    return str(getattr(step, "__name__", "") or type(step).__name__ or f"step {number}")


def _module_of(step: Any) -> nn.Module | None:
    if isinstance(step, nn.Module):
        return step
    owner = getattr(step, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None


def stages_of(side: Side, inputs: Sequence[Array], batch: int) -> list[Stage]:
    """Every step's and layer's output over all rows; the last is the answer."""
    kept = _Kept()
    rows = len(inputs[0])
    for start in range(0, rows, batch):
        given: Any = tuple(array[start : start + batch] for array in inputs)
        for number, (name, step) in enumerate(side.steps):
            result = _asked(step, given, name if len(side.steps) > 1 else "", kept)
            is_last = number == len(side.steps) - 1
            kept.add(ANSWER if is_last else name, result, _site_of(step))
            given = result if isinstance(result, tuple) else (result,)
    if ANSWER not in kept.values:
        raise SideNotUsable(f"{side.name} answers with nothing that can be compared as numbers")
    found = [Stage(name, _joined(values), kept.sites[name]) for name, values in kept.values.items()]
    return [s for s in found if s.name != ANSWER] + [s for s in found if s.name == ANSWER]


def _joined(values: list[Array]) -> Array:
    whole = all(v.ndim and v.shape[1:] == values[0].shape[1:] for v in values)
    return np.concatenate(values) if whole else values[0]


def _asked(step: Any, given: tuple[Any, ...], prefix: str, kept: _Kept) -> Any:
    exported = not callable(step) and hasattr(step, "module")
    called = step.module() if exported else step
    module = _module_of(called)
    if module is None:
        return called(*(g.numpy() if isinstance(g, torch.Tensor) else g for g in given))
    tensors = [torch.from_numpy(np.ascontiguousarray(g)) if _is_numeric(g) else g for g in given]
    with torch.no_grad(), _watched(module, prefix, kept):
        return called(*tensors)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


@contextmanager
def _watched(module: nn.Module, prefix: str, kept: _Kept) -> Iterator[None]:
    """Outputs of the innermost layers. Compiled and scripted ones have none that can be watched."""
    hooks = []
    if not isinstance(module, torch.jit.ScriptModule):
        leaves = [(n, m) for n, m in module.named_modules() if n and not any(m.children())]
        for name, leaf in leaves[:MAX_LAYERS]:
            full = f"{prefix}.{name}" if prefix else name

            def take(leaf: nn.Module, args: Any, result: Any, full: str = full) -> None:
                kept.add(full, result, _site_of(leaf))

            hooks.append(leaf.register_forward_hook(take))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def as_plain(value: Any) -> Array | None:
    """Numbers of a tensor, an array, a list or the first of several outputs."""
    if isinstance(value, (tuple, Mapping)) and len(value):
        first = next(iter(value.values())) if isinstance(value, Mapping) else value[0]
        return as_plain(first)
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        if plain.is_quantized:
            plain = plain.dequantize()
        value = plain.float().cpu().numpy() if plain.is_floating_point() else plain.cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return np.array(array) if array.dtype.kind in "fiub" and array.size else None


def _site_of(step: Any) -> Site | None:
    """Where the user wrote it; None for what torch brings along."""
    thing = type(step) if isinstance(step, nn.Module) else inspect.unwrap(step)
    if isinstance(step, nn.Module) and type(step).__module__.split(".")[0] == "torch":
        return None
    try:
        file = inspect.getsourcefile(thing)
        lines, line = inspect.getsourcelines(thing)
    except (OSError, TypeError):
        return None
    if file is None:
        return None
    name = getattr(thing, "__qualname__", "")
    return Site(os.path.relpath(file), line, name, lines[0].strip()[:200])
