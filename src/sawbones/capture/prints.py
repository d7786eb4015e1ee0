"""Fingerprints: 64 bits over the bytes of a tensor. Equal prints mean equal bits."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch

from sawbones.observe.fingerprints import raw_bytes

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def fingerprint(tensor: torch.Tensor) -> str:
    digest = hashlib.blake2b(f"{tensor.dtype}{tuple(tensor.shape)}".encode(), digest_size=8)
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if hasattr(plain, "to_local"):  # this rank's part of a DTensor
        plain = plain.to_local()
    if plain.dtype.is_complex:
        plain = torch.view_as_real(plain.resolve_conj())
    if plain.numel():
        digest.update(raw_bytes(plain.to("cpu")))
    return digest.hexdigest()


def named_parameters(recorder: Recorder) -> list[tuple[str, torch.Tensor]]:
    """Each by its name in the model; parameters outside of one by their place in the optimizer."""
    named: dict[int, tuple[str, torch.Tensor]] = {}
    for number, root in enumerate(recorder.census.roots()):
        for name, parameter in root.named_parameters():
            named.setdefault(id(parameter), (f"{number}:{name}" if number else name, parameter))
    for index, optimizer in enumerate(recorder.census.optimizers()):
        for g, group in enumerate(optimizer.param_groups):
            for i, parameter in enumerate(group["params"]):
                named.setdefault(
                    id(parameter), (f"optimizer {index}, group {g}, parameter {i}", parameter)
                )
    return list(named.values())


def gradient_prints(recorder: Recorder) -> dict[str, str]:
    return {
        name: fingerprint(p.grad) for name, p in named_parameters(recorder) if p.grad is not None
    }
