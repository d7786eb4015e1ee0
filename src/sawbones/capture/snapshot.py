"""Weights, optimizer state and loss scales: collected from the live objects, cloned into the ring,
loaded into a rebuilt run.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.capture.prints import named_parameters
from sawbones.capture.tensors import storable

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_PLAIN = (bool, int, float, str, type(None))


class Scalers:
    """Loss scalers are found once among all objects, then remembered: nothing tells about them at
    no cost.
    """

    def __init__(self) -> None:
        self._known: list[weakref.ref[Any]] | None = None

    def living(self, again: bool = False) -> list[Any]:
        if self._known is None or again:
            found = [
                o
                for o in gc.get_objects()
                if type(o).__name__.endswith("GradScaler") and hasattr(o, "state_dict")
            ]
            self._known = [weakref.ref(o) for o in found if _enabled(o)]
        return [scaler for ref in self._known if (scaler := ref()) is not None]


def _enabled(scaler: Any) -> bool:
    try:
        return bool(scaler.is_enabled())
    except Exception:
        return False


def collect(recorder: Recorder, scalers: Scalers) -> dict[str, Any]:
    """The live objects themselves, not copies: to be cloned or written before the host goes on."""
    models = []
    for root in recorder.census.roots():
        tensors: dict[str, torch.Tensor] = dict(root.named_parameters(remove_duplicate=False))
        tensors |= dict(root.named_buffers(remove_duplicate=False))
        models.append({"class": type(root).__name__, "tensors": tensors})
    optimizers = [_optimizer(o) for o in recorder.census.optimizers()]
    # Walking over all objects takes a tenth of a second: only where a scaler was built.
    found = [_scaler(s) for s in scalers.living()] if recorder.facts.get("scalers") else []
    at = {"step": recorder.step, "microstep": recorder.microstep}
    return {**at, "models": models, "optimizers": optimizers, "scalers": found, "gradients": None}


def gradients_of(recorder: Recorder) -> dict[str, torch.Tensor]:
    """Copies of what the next backward pass will add to: only where a loop carries gradients from
    one step into the next.
    """
    found = {name: p.grad.detach() for name, p in named_parameters(recorder) if p.grad is not None}
    return {name: grad.clone() for name, grad in found.items() if storable(grad)}


def _optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    groups = [
        {k: v for k, v in g.items() if k != "params" and _is_plain(v)}
        for g in optimizer.param_groups
    ]
    params = [list(g["params"]) for g in optimizer.param_groups]
    state = [[_plain_state(optimizer.state.get(p)) for p in ps] for ps in params]
    return {"class": type(optimizer).__name__, "groups": groups, "params": params, "state": state}


def _is_plain(value: Any) -> bool:
    return isinstance(value, (*_PLAIN, torch.Tensor)) or (
        isinstance(value, tuple) and all(isinstance(v, _PLAIN) for v in value)
    )


def _plain_state(state: Any) -> Any:
    return {k: v for k, v in state.items() if _is_plain(v)} if isinstance(state, dict) else None


def _scaler(scaler: Any) -> dict[str, Any]:
    """Values that live on a device stay there: reading them would wait for it."""
    return {
        "scale": getattr(scaler, "_scale", None),
        "growth": getattr(scaler, "_growth_tracker", None),
    }


def tensors_of(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from tensors_of(value)
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from tensors_of(value)


def size_of(state: dict[str, Any]) -> int:
    seen: set[int] = set()
    total = 0
    for tensor in tensors_of(state):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            total += tensor.numel() * tensor.element_size()
    return total


def has_nan(state: dict[str, Any]) -> bool:
    """Among the weights. Infinity is what masks are made of."""
    weights = (t for t in tensors_of(state["models"]) if t.is_floating_point() and storable(t))
    return any(bool(torch.isnan(t).any()) for t in weights)


def cloned(state: Any, known: dict[int, torch.Tensor] | None = None) -> Any:
    """Copies on the device where each tensor lies; one copy where several names hold the same
    tensor.
    """
    known = {} if known is None else known
    if isinstance(state, torch.Tensor):
        if id(state) not in known:
            plain = state.detach()
            known[id(state)] = plain.clone() if storable(plain) else plain
        return known[id(state)]
    if isinstance(state, dict):
        return {k: cloned(v, known) for k, v in state.items()}
    if isinstance(state, list):
        return [cloned(v, known) for v in state]
    return state


# loading


def load_models(saved: list[dict[str, Any]], roots: list[nn.Module]) -> list[str]:
    """Copies the saved values in place; returns what did not fit."""
    problems = []
    for entry, root in zip(saved, roots, strict=False):
        live = dict(root.named_parameters(remove_duplicate=False)) | dict(
            root.named_buffers(remove_duplicate=False)
        )
        for name, value in entry["tensors"].items():
            if name not in live:
                problems.append(f"the rebuilt {type(root).__name__} has no {name}")
            elif not _copy(live[name], value):
                problems.append(
                    f"{name} is {tuple(live[name].shape)} in the rebuilt model, "
                    f"{tuple(value.shape)} in the bundle"
                )
    return problems


def load_optimizers(
    saved: list[dict[str, Any]], optimizers: list[torch.optim.Optimizer]
) -> list[str]:
    problems = []
    for entry, optimizer in zip(saved, optimizers, strict=False):
        if type(optimizer).__name__ != entry["class"] or [len(p) for p in entry["params"]] != [
            len(g["params"]) for g in optimizer.param_groups
        ]:
            problems.append(
                f"the rebuilt optimizer is {type(optimizer).__name__}, with other "
                "parameters than the bundle's"
            )
            continue
        for group, plain, params, states in zip(
            optimizer.param_groups, entry["groups"], entry["params"], entry["state"], strict=True
        ):
            group.update(
                {k: v for k, v in plain.items() if k in group and not isinstance(v, torch.Tensor)}
            )
            for live, value, state in zip(group["params"], params, states, strict=True):
                if isinstance(value, torch.Tensor) and not _copy(live, value):
                    problems.append("a parameter of the optimizer has another shape")
                if state:
                    optimizer.state[live] = {k: _beside(v, live, k) for k, v in state.items()}
                else:
                    optimizer.state.pop(live, None)
    return problems


def _beside(value: Any, parameter: torch.Tensor, key: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.clone() if key == "step" else value.to(parameter.device, copy=True)


def load_scalers(saved: list[dict[str, Any]], scalers: list[Any]) -> None:
    for entry, scaler in zip(saved, scalers, strict=False):
        if isinstance(entry.get("scale"), torch.Tensor):
            device = getattr(scaler, "_device", "cpu")
            scaler._scale = entry["scale"].to(device, copy=True)
            growth = entry.get("growth")
            scaler._growth_tracker = (
                growth.to(device, copy=True) if isinstance(growth, torch.Tensor) else growth
            )


def load_gradients(saved: dict[str, torch.Tensor], recorder: Recorder) -> None:
    for name, parameter in named_parameters(recorder):
        value = saved.get(name)
        fits = value is not None and value.shape == parameter.shape
        parameter.grad = (
            value.to(parameter.device, copy=True) if fits and value is not None else None
        )


def _copy(live: torch.Tensor, value: torch.Tensor) -> bool:
    if live.shape != value.shape:
        return False
    with torch.no_grad():
        live.copy_(value)
    return True
