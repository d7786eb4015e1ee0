"""Other tools that watch a training: how each is put around or into one of overhead.py's."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from overhead import Training


def naive_norms(model: nn.Module) -> Callable[[], object]:
    def measure() -> None:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.norm().item()
                p.grad.abs().max().item()
            p.norm().item()

    return measure


def wandb_watch(training: Training, folder: str) -> None:
    import wandb

    run = wandb.init(
        project="overhead", dir=folder, mode="offline", settings=wandb.Settings(silent=True)
    )
    run.watch(training.model, log="all", log_freq=1)
    training.after_backward = lambda: run.log({"x": 1.0})
    training.close = run.finish


def tensorboard_histograms(training: Training, folder: str) -> None:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)
    count = 0

    def write() -> None:
        nonlocal count
        count += 1
        for name, p in training.model.named_parameters():
            writer.add_histogram(name, p.grad, count)

    training.after_backward = write
    training.close = writer.close


def underflow_overflow(training: Training) -> None:
    from transformers.debug_utils import DebugUnderflowOverflow

    DebugUnderflowOverflow(training.model)


@contextlib.contextmanager
def anomaly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=True):
            yield


def debug_mode() -> contextlib.AbstractContextManager[Any]:
    from torch.utils._debug_mode import DebugMode

    return DebugMode()
