"""One batch for all ranks: with the same weights, every rank must answer it with the same numbers.

Under `diagnose`, the first rank leaves what its model was first called with in the store where the
ranks met. On some steps each rank that has it calls a copy of its own model with it and fingerprints
what every layer puts out; the fingerprints travel with those of the weights. Nobody waits for the
batch, nobody makes a collective: a model that wants one is not asked again. Dropout is off, norms
use the batch, and random streams stand at one place on all ranks and are put back.
"""

from __future__ import annotations

import copy
import io
import random
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._python_dispatch import TorchDispatchMode

from sawbones.observe.deep import DeepObserver
from sawbones.observe.deep.guard import untouched
from sawbones.observe.signals.shards import sharded
from sawbones.observe.tensor_prints import Pending
from sawbones.properties.inputs import answer_of, mapped, tensors_in
from sawbones.schema.ranks import GIVEN

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

MOST_BYTES = 4 << 20
MOST_PARAMETERS = 50_000_000
MOST_ANSWERS = 200  # of layers
MOST_ASKED = 8  # times in a run
_SEED = 0x5AB1
_COLLECTIVES = {"c10d", "_c10d_functional", "c10d_functional", "symm_mem"}


class WantsOthers(Exception):
    """The model communicates: it cannot be called on one rank alone."""


class _Alone(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.namespace in _COLLECTIVES:
            raise WantsOthers
        return func(*args, **(kwargs or {}))


class SharedBatch:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._module: weakref.ref[nn.Module] | None = None
        self._call: Any = None
        self._left = MOST_ASKED

    @property
    def is_open(self) -> bool:
        """No call was seen so far."""
        return self._module is None and self._left > 0

    def called(self) -> bytes | None:
        """At the first step: the latest call of a model, as bytes for the other ranks."""
        if self._r.last_call is None or sharded(self._r):
            self._left = 0
            return None
        module, args, kwargs = self._r.last_call
        self._module = weakref.ref(module)
        given = list(tensors_in((args, kwargs)))
        if (
            not given
            or sum(t.numel() * t.element_size() for t in given) > MOST_BYTES
            or sum(p.numel() for p in module.parameters()) > MOST_PARAMETERS
        ):
            self._left = 0
            return None
        packed = io.BytesIO()
        plain = mapped((args, kwargs), lambda t: t.detach().cpu().clone())
        try:
            torch.serialization.save(plain, packed)
        except Exception:  # something that is no tensor and cannot be sent
            self._left = 0
            return None
        return packed.getvalue()

    def ask(self, shared: bytes | None) -> tuple[list[str], Pending] | None:
        """Names and fingerprints: of what goes in, then of what every layer puts out."""
        module = self._module() if self._module is not None else None
        if shared is None or module is None or self._left <= 0:
            return None
        self._left -= 1
        recorder = self._r
        depth, recorder.depth = recorder.depth, 1
        DeepObserver.busy = True
        try:
            if self._call is None:
                self._call = torch.serialization.load(io.BytesIO(shared), weights_only=True)
            first, again = _answers(module, self._call), _answers(module, self._call)
            if not _repeats(first, again):
                self._left = 0  # a random stream of its own, or a device that does not repeat
                return None
            return [name for name, _ in first], Pending([tensor for _, tensor in first])
        except Exception:  # it wants others, cannot be copied, or not be called like this
            self._left = 0
            return None
        finally:
            recorder.depth = depth
            DeepObserver.busy = False


def _answers(module: nn.Module, call: Any) -> list[tuple[str, Tensor]]:
    with torch._C.DisableTorchFunction(), untouched([]), torch.no_grad(), _Alone():  # type: ignore[no-untyped-call]
        model = copy.deepcopy(module).eval()
        for inner in model.modules():
            if isinstance(inner, _NormBase):
                inner.train()  # running statistics differ between ranks, as they may
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        args, kwargs = mapped(call, lambda t: t.to(device))
        found = _given(model, (args, kwargs))
        for name, inner in model.named_modules():
            if name and not any(inner.children()):
                inner.register_forward_hook(_keeper(name, found))
        _same_streams()
        answer = answer_of(model(*args, **kwargs))
        if answer is not None:
            found.append(("", answer.clone()))
        return found[:MOST_ANSWERS]


def _same_streams() -> None:
    """Not torch.manual_seed: where CUDA is not in use yet it would seed the devices later on."""
    generators = [torch.default_generator]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        generators += torch.cuda.default_generators
    for generator in generators:
        generator.manual_seed(_SEED)
    random.seed(_SEED)
    np.random.seed(_SEED)


def _given(model: nn.Module, call: Any) -> list[tuple[str, Tensor]]:
    """What the answers depend on beside the weights."""
    named = [
        (f"{GIVEN}{path}.{name}", buffer.clone())
        for path, inner in model.named_modules()
        if not isinstance(inner, _NormBase)
        for name, buffer in inner._buffers.items()
        if buffer is not None
    ]
    return [(f"{GIVEN}batch", tensor) for tensor in tensors_in(call)] + named


def _keeper(name: str, found: list[tuple[str, Tensor]]) -> Any:
    def keep(module: nn.Module, args: Any, result: Any) -> None:
        answer = answer_of(result)
        if answer is not None and len(found) < MOST_ANSWERS:
            found.append((name, answer.clone()))

    return keep


def _repeats(first: list[tuple[str, Tensor]], again: list[tuple[str, Tensor]]) -> bool:
    if [name for name, _ in first] != [name for name, _ in again]:
        return False
    return all(
        torch.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)
        for (_, a), (_, b) in zip(first, again, strict=True)
    )
