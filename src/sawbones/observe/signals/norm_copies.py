"""Copies of a trained model that are evaluated, and whether the statistics of their batch norms are
still those of the first day.

Under `diagnose` only. A copy has parameters of the same shapes in the same order, was never trained
itself and holds what was trained since: a model as it was before training, kept for comparison, is
none.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sawbones.observe.calls import is_training
from sawbones.observe.journal import Journal
from sawbones.observe.populations.likeness import cosine_of
from sawbones.observe.populations.serving import COPY_COSINE
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Site
from sawbones.schema.one_off import NormCopy

_MAX_TRAINED = 8
_MAX_WRITTEN = 4096
_MAX_COPIES = 16


@dataclass(frozen=True)
class _Trained:
    module: weakref.ref[nn.Module]
    shapes: list[torch.Size]
    sums: list[float]  # of each parameter, before it was trained


class NormCopies:
    def __init__(self, journal: Journal, sites: SiteFinder) -> None:
        journal.on_write.append(self._wrote)
        self._sites = sites
        self._trained: list[_Trained] = []
        self._written: dict[int, Site | None] = {}  # by address: where it was last seen written to
        self._looked: dict[
            int, tuple[int, int]
        ] = {}  # by identity: step and state of its last look
        self._copies: dict[int, NormCopy] = {}  # by the module's identity, as it answered last

    def called(self, module: nn.Module, phase: str, step: int) -> None:
        if not is_training(module):
            state = (step, _writes(module))
            if self._looked.get(id(module)) != state:  # an evaluation has many calls
                self._looked[id(module)] = state
                self._answers(module, step)
        elif phase == "train":
            self._trains(module)

    def _trains(self, module: nn.Module) -> None:
        known = any(one.module() is module for one in self._trained)
        if known or len(self._trained) >= _MAX_TRAINED or not _norms(module):
            return
        shapes = [p.shape for p in module.parameters()]
        self._trained.append(_Trained(weakref.ref(module), shapes, _sums(module)))

    def _wrote(self, name: str, func: Any, args: Any, find: Callable[[], Site | None]) -> None:
        """An operator changed its first argument."""
        first = args[0] if args else None
        first = first[0] if isinstance(first, (list, tuple)) and first else first
        if not self._trained or not isinstance(first, torch.Tensor) or first.requires_grad:
            return
        if first.layout is not torch.strided or len(self._written) >= _MAX_WRITTEN:
            return
        address = first.data_ptr()
        if address and address not in self._written:
            self._written[address] = find()

    def _answers(self, module: nn.Module, step: int) -> None:
        norms = _norms(module)
        is_new = id(module) not in self._copies
        if not norms or (is_new and len(self._copies) >= _MAX_COPIES):
            return
        for one in self._trained:
            trained = one.module()
            if trained is None or any(m in _norms(trained) for m in norms):
                continue
            if [p.shape for p in module.parameters()] == one.shapes and _holds(module, one):
                self._copies[id(module)] = self._compared(trained, module, step)
                return

    def record(self) -> list[NormCopy] | None:
        return list(self._copies.values()) or None

    def _compared(self, trained: nn.Module, module: nn.Module, step: int) -> NormCopy:
        theirs, ours = _norms(module), _norms(trained)
        return NormCopy(
            type(module).__name__,
            step,
            len(theirs),
            sum(map(_is_unmoved, theirs)),
            len(ours) - sum(map(_is_unmoved, ours)),
            next(
                (
                    site
                    for p in module.parameters()
                    if (site := self._written.get(p.data_ptr())) is not None
                ),
                None,
            ),
            self._sites.find(),
        )


def _norms(module: nn.Module) -> list[nn.Module]:
    """Layers that normalise with statistics which they gather in training."""
    return [
        m
        for m in module.modules()
        if isinstance(getattr(m, "running_mean", None), torch.Tensor)
        and isinstance(getattr(m, "running_var", None), torch.Tensor)
    ]


def _is_unmoved(norm: nn.Module) -> bool:
    mean, variance = norm.running_mean, norm.running_var
    return not bool(mean.any()) and bool((variance == 1).all())  # type: ignore[operator, union-attr]


def _writes(module: nn.Module) -> int:
    """How often its buffers were written to."""
    return sum(b._version for b in module.buffers() if not b.is_inference())


def _sums(module: nn.Module) -> list[float]:
    with torch.no_grad():
        return [float(p.double().sum()) for p in module.parameters()]


def _holds(module: nn.Module, one: _Trained) -> bool:
    """Whether it holds what was trained, not what was there before or something of its own."""
    trained = one.module()
    if trained is None or _sums(module) == one.sums:
        return False
    pairs = zip(trained.parameters(), module.parameters(), strict=True)
    cosine = cosine_of([(a, b) for a, b in pairs if a.dim() > 1 and a.device == b.device])
    return cosine is not None and cosine >= COPY_COSINE
