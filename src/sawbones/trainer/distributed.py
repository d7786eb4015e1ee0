"""Ranks under torchrun: gloo on CPU, nccl on CUDA. A single process is rank 0 of 1, without a
process group.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def total(self, values: Sequence[float], device: torch.device) -> list[float]:
        """Sums over all ranks, in float64: token counts must not be rounded."""
        if self.world_size == 1:
            return [float(v) for v in values]
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        dist.all_reduce(tensor)
        return [float(v) for v in tensor.tolist()]

    def gather(self, value: Any) -> list[Any]:
        """The value of every rank, on every rank."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values

    def barrier(self) -> None:
        if self.world_size > 1:
            dist.barrier()

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        """DDP broadcasts rank 0's parameters once and averages gradients after each synchronised
        backward.
        """
        if self.world_size == 1:
            return model
        return DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None
        )

    def unsynchronised(self, wrapped: nn.Module) -> AbstractContextManager[None]:
        """For all but the last micro-batch: gradients add up locally and travel once."""
        if isinstance(wrapped, DistributedDataParallel):
            return wrapped.no_sync()  # type: ignore[no-any-return, no-untyped-call, unused-ignore]
        return nullcontext()


def from_environment() -> Ranks:
    """torchrun tells each process who it is by these variables."""
    return Ranks(
        rank=int(os.environ.get("RANK", 0)),
        world_size=int(os.environ.get("WORLD_SIZE", 1)),
        local_rank=int(os.environ.get("LOCAL_RANK", 0)),
    )


def pick_device(name: str, ranks: Ranks) -> torch.device:
    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        device = torch.device("cuda", ranks.local_rank)
        torch.cuda.set_device(device)
        return device
    return torch.device("cpu")


@contextmanager
def process_group(ranks: Ranks, device: torch.device) -> Iterator[None]:
    if ranks.world_size == 1:
        yield
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()
