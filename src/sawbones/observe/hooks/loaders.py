"""DataLoader: when it is built, when an epoch begins, and every batch with the time that the loop
waited for it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.data.distributed import DistributedSampler

from sawbones.observe.batches import shapes_of
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.patches import Patches
from sawbones.observe.sites import is_user_file
from sawbones.schema import Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


MAX_LOADERS = 64  # described; a script may build one per epoch


def install(recorder: Recorder, patches: Patches) -> None:
    brief = recorder.brief

    def make_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if recorder.is_host():
                recorder.guard("loader", built, self)

        return __init__

    def built(loader: Any) -> None:
        site = recorder.sites.find()
        dataset = loader.dataset
        size, length = _length(dataset), _length(loader)
        entry = {
            "index": recorder.batches.loader_index(loader),
            "batch_size": loader.batch_size,
            "num_workers": loader.num_workers,
            "drop_last": bool(loader.drop_last),
            "sampler": type(loader.sampler).__name__ if loader.sampler is not None else None,
            "sampler_shuffles": getattr(loader.sampler, "shuffle", None),
            "batch_sampler": type(loader.batch_sampler).__name__
            if loader.batch_sampler is not None
            else None,
            "dataset": type(dataset).__name__,
            "size": size,
            "length": length,
            "worker_init_fn": loader.worker_init_fn is not None,
            "generator": loader.generator is not None,
            "site": site,
            "collate_site": _definition(loader.collate_fn),
            "stream_site": _definition(type(dataset).__iter__)
            if isinstance(dataset, IterableDataset)
            else None,
        }
        if (
            recorder.fitted is not None
        ):  # statistics of the data may be gone once the function that builds loaders has returned
            recorder.guard("fitted", recorder.fitted.look, sys._getframe(1))
        known = recorder.facts.setdefault("loaders", [])
        if recorder.vocabularies is not None and len(known) < 4:
            recorder.guard("vocabularies", recorder.vocabularies.look_early, sys._getframe(1))
        if len(known) < MAX_LOADERS:
            known.append(entry)

    def _length(owner: Any) -> int | None:
        try:
            return len(owner)
        except (TypeError, NotImplementedError, ValueError):
            return None

    def _definition(function: Any) -> Site | None:
        """Where a function of the user's own is defined; None for a library's."""
        function = getattr(function, "func", function)  # functools.partial
        function = getattr(
            function, "data_collator", function
        )  # the wrapper of Hugging Face's Trainer
        code = getattr(function, "__code__", None)
        if code is None:
            code = getattr(vars(type(function)).get("__call__"), "__code__", None)
        if code is None or not is_user_file(code.co_filename):
            return None
        return Site(recorder.sites.shown(code.co_filename), code.co_firstlineno, code.co_name)

    def make_iter(original: Any) -> Any:
        def __iter__(self: Any) -> Any:
            iterator = original(self)
            if recorder.is_process():
                brief.leave()
                recorder.guard("loader", recorder.batches.started, self, iterator)
            return iterator

        return __iter__

    def make_next(original: Any) -> Any:
        def __next__(self: Any) -> Any:
            if not recorder.is_process():
                return original(self)
            began = time.perf_counter()
            value = original(self)
            wait_s = time.perf_counter() - began
            is_brief = brief.on and recorder.threads.is_here()
            if not (is_brief and brief(brief.batch, self, wait_s, value)):
                recorder.guard("batch", fetched, self, wait_s, value)
            return value

        return __next__

    def fetched(iterator: Any, wait_s: float, value: Any) -> None:
        recorder.depth = 0
        brief.fetched(iterator)
        recorder.steps.wait_ms += wait_s * 1e3
        index = recorder.batches.fetched(
            iterator, wait_s, value, recorder.step, recorder.microstep, recorder.phase
        )
        if recorder.wants("batch"):
            recorder.event(
                "batch",
                {
                    "loader": index,
                    "wait_ms": round(wait_s * 1e3, 3),
                    "tensors": shapes_of(tensors_in(value)),
                },
            )
        if recorder.capture is not None:
            recorder.tell(recorder.capture.batch, iterator, value, sys._getframe(1))

    def make_set_epoch(original: Any) -> Any:
        def set_epoch(self: Any, epoch: int) -> None:
            original(self, epoch)
            if recorder.is_host():
                recorder.guard("set_epoch", recorder.event, "set_epoch", {"epoch": int(epoch)})

        return set_epoch

    patches.replace(DataLoader, "__init__", make_init)
    patches.replace(DataLoader, "__iter__", make_iter)
    patches.replace(_BaseDataLoaderIter, "__next__", make_next)
    patches.replace(DistributedSampler, "set_epoch", make_set_epoch)
