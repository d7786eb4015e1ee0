"""Distributed training: wrapping in DDP or FSDP, no_sync, collectives, and the watch over ranks
that wait for each other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import DistributedSampler

from sawbones.observe.agreement import Agreement
from sawbones.observe.patches import Patches
from sawbones.observe.signals.epoch_loop import epoch_site
from sawbones.observe.signals.shards import ShardLog
from sawbones.observe.signals.writes import WriteLog
from sawbones.observe.watchdog import Watchdog

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

COLLECTIVES = (
    "all_reduce",
    "broadcast",
    "all_gather",
    "all_gather_into_tensor",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "barrier",
    "scatter",
    "gather",
    "all_gather_object",
    "broadcast_object_list",
)
CALLERS = 3  # frames of the user's around a collective, that are kept with it


class _Ranks:
    """The ranks of this run and the watch over them, once it is known that there are several."""

    def __init__(self, recorder: Recorder, patches: Patches) -> None:
        self.recorder = recorder
        self.watchdog: Watchdog | None = None
        self.comparing: list[Agreement] = []
        self._patches = patches

    def meet(self, world_size: int) -> None:
        """A launcher says at once how many ranks there are; a process that the script started knows
        when it has met the others.
        """
        if self.watchdog is not None or world_size < 2:
            return
        recorder, patches = self.recorder, self._patches
        self.watchdog = Watchdog(recorder, world_size)
        patches.on_exit(self.watchdog.close)
        _watch_shards(recorder, patches, ShardLog(recorder))
        if recorder.journal is not None:
            _watch_writes(recorder, patches, WriteLog(recorder))

    def met(self) -> None:
        recorder = self.recorder
        if self.watchdog is None and recorder.is_host() and distributed.is_initialized():
            recorder.guard("parallel", self.meet, distributed.get_world_size())


def install(recorder: Recorder, patches: Patches) -> None:
    if not distributed.is_available():
        return
    ranks = _Ranks(recorder, patches)
    ranks.meet(int(os.environ.get("WORLD_SIZE", "1") or 1))
    patches.replace(distributed, "init_process_group", partial(_make_init_process_group, ranks))
    ranks.comparing = _compare_ranks(recorder, patches)
    patches.replace(DistributedSampler, "__iter__", partial(_make_iter, recorder))
    patches.replace(distributed.Work, "wait", partial(_make_wait, ranks))
    patches.replace(DistributedDataParallel, "__init__", partial(_make_init, ranks))
    patches.replace(DistributedDataParallel, "no_sync", partial(_make_no_sync, recorder))
    for name in COLLECTIVES:
        patches.replace(distributed, name, partial(_make_collective, ranks))


def _make_init_process_group(ranks: _Ranks, original: Any) -> Any:
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        ranks.met()

    return init_process_group


def _make_init(ranks: _Ranks, original: Any) -> Any:
    recorder = ranks.recorder

    def __init__(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        ranks.met()
        original(self, module, *args, **kwargs)
        if recorder.is_host():
            data = {
                "cls": "DistributedDataParallel",
                "world_size": distributed.get_world_size(),
            }
            data["find_unused_parameters"] = bool(kwargs.get("find_unused_parameters", False))
            data["broadcast_buffers"] = bool(getattr(self, "broadcast_buffers", True))
            recorder.guard("parallel", recorder.event, "parallel", data)

    return __init__


def _make_no_sync(recorder: Recorder, original: Any) -> Any:
    @contextlib.contextmanager
    def no_sync(self: Any) -> Iterator[None]:
        if recorder.is_host():
            recorder.guard("parallel", recorder.event, "parallel", {"cls": "no_sync"})
        with original(self):
            yield

    return no_sync


def _make_collective(ranks: _Ranks, original: Any) -> Any:
    recorder = ranks.recorder

    def collective(*args: Any, **kwargs: Any) -> Any:
        if not recorder.is_host() or torch.compiler.is_compiling():
            return original(*args, **kwargs)
        shape = next((list(a.shape) for a in args if isinstance(a, torch.Tensor)), None)
        data = {"op": original.__name__, "shape": shape}
        if kwargs.get("group") is not None:  # of some of the ranks, perhaps
            data["group"] = distributed.get_world_size(kwargs["group"])
        elif ranks.comparing:
            ranks.comparing[0].saw(original.__name__, shape, args)
        site = recorder.sites.find()
        # A call inside a function of the user's own is one rank's alone because of whoever
        # called that function.
        data["callers"] = callers = [
            [c.file, c.line, c.function, c.code[:80]] for c in recorder.sites.callers(CALLERS)
        ]
        recorder.guard("collective", recorder.event, "collective", data, site)
        if ranks.watchdog is None:
            return original(*args, **kwargs)
        with ranks.watchdog.inside(original.__name__, shape, site, callers=callers):
            return original(*args, **kwargs)

    return collective


def _make_wait(ranks: _Ranks, original: Any) -> Any:
    recorder = ranks.recorder

    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        if ranks.watchdog is None or not recorder.is_host():
            return original(self, *args, **kwargs)
        with ranks.watchdog.inside("wait", None, counts=False):
            return original(self, *args, **kwargs)

    return wait


def _make_iter(recorder: Recorder, original: Any) -> Any:
    def __iter__(self: Any) -> Any:
        if recorder.is_host() and recorder.options.journal and "epoch_loop" not in recorder.facts:
            recorder.facts["epoch_loop"] = recorder.guard("sampler", epoch_site, recorder.sites)
        return original(self)

    return __iter__


def _watch_shards(recorder: Recorder, patches: Patches, shards: ShardLog) -> None:
    def make_backward(original: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            if recorder.is_host() and not torch.compiler.is_compiling():
                recorder.guard("shards", shards.backward_ended)

        return backward

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.is_host():
            recorder.guard("shards", shards.step_begins)

    patches.replace(torch.autograd, "backward", make_backward)
    patches.on_exit(register_optimizer_step_pre_hook(before).remove)


def _watch_writes(recorder: Recorder, patches: Patches, writes: WriteLog) -> None:
    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        writes.stepping = True

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        writes.stepping = False

    def wrote(*given: Any) -> None:
        recorder.guard("writes", writes.wrote, *given)

    if recorder.journal is not None:
        recorder.journal.on_write.append(wrote)
    patches.on_exit(register_optimizer_step_pre_hook(before).remove)
    patches.on_exit(register_optimizer_step_post_hook(after).remove)


def _compare_ranks(recorder: Recorder, patches: Patches) -> list[Agreement]:
    """From the first step in a process group of several ranks until it is destroyed. The list holds
    at most one.
    """
    current: list[Agreement] = []

    def make_backward(original: Any) -> Any:
        def backward(*args: Any, **kwargs: Any) -> None:
            if current and recorder.is_host():
                current[0].saw("backward")
            original(*args, **kwargs)

        return backward

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not recorder.is_host() or not distributed.is_initialized():
            return
        if not current and "ranks" not in recorder.guard.off and distributed.get_world_size() > 1:
            recorder.guard("ranks", lambda: current.append(Agreement(recorder)))
        if current:
            current[0].saw("step")
            recorder.guard("ranks", current[0].step_begins)

    def after(_: Recorder) -> None:
        if current:
            recorder.guard("ranks", current[0].step_ended, recorder)

    def stop() -> None:
        if current:
            recorder.guard("ranks", current.pop().close)

    def make_destroy(original: Any) -> Any:
        def destroy_process_group(group: Any = None) -> None:
            if recorder.is_host() and group in (None, distributed.group.WORLD):
                stop()
            original(group)

        return destroy_process_group

    patches.replace(torch.autograd, "backward", make_backward)
    patches.replace(distributed, "destroy_process_group", make_destroy)
    recorder.listeners.append(after)
    patches.on_exit(register_optimizer_step_pre_hook(before).remove)
    patches.on_exit(stop)
    patches.on_exit(lambda: recorder.listeners.remove(after))
    return current
