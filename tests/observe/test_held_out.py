"""An evaluation that keeps its gradients is told by its loader: nothing was ever learnt from it."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader

from sawbones.observe.batches import BatchLog


def test_a_loader_is_held_out_as_long_as_only_another_is_learnt_from() -> None:
    log = BatchLog(lambda index, batch: None)
    loaders = [DataLoader(torch.randn(4, 2)) for _ in range(2)]

    def fetch(number: int) -> bool:
        iterator = iter(loaders[number])
        log.started(loaders[number], iterator)
        log.fetched(iterator, 0.0, next(iterator), 0, 0, "train")
        return log.is_held_out

    assert not fetch(0)  # nothing is known before the first backward pass
    log.learnt()
    assert fetch(1)
    assert not fetch(0)
    fetch(1)
    log.learnt()
    assert not fetch(1)
