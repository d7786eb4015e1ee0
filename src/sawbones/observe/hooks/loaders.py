"""DataLoader: when it is built, when an epoch begins, and every batch with the time that the loop
waited for it.
"""

from __future__ import annotations

import sys
import time
import types
import weakref
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.data.distributed import DistributedSampler

from sawbones.observe.batches import shapes_of
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.operators import Hearings
from sawbones.observe.patches import Patches
from sawbones.observe.signals.drawn import DrawnRows
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.observe.variables import variables_of
from sawbones.schema import Loader, Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


MAX_LOADERS = 64  # described; a script may build one per epoch
MAX_NAMES = 4

_DataSets = list["weakref.ref[Any]"]


def install(recorder: Recorder, patches: Patches) -> None:
    drawn = DrawnRows() if recorder.options.journal else None
    patches.replace(DataLoader, "__init__", partial(_make_init, recorder, drawn, []))
    patches.replace(DataLoader, "__iter__", partial(_make_iter, recorder))
    patches.replace(_BaseDataLoaderIter, "__next__", partial(_make_next, recorder))
    patches.replace(_BaseDataLoaderIter, "_next_index", partial(_make_next_index, recorder, drawn))
    if drawn is not None:
        recorder.at_the_end.append(lambda: recorder.facts.update(drawn=drawn.record()))
    patches.replace(DistributedSampler, "set_epoch", partial(_make_set_epoch, recorder))


def _make_init(recorder: Recorder, drawn: DrawnRows | None, data: _DataSets, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if recorder.is_host():
            recorder.guard("loader", _built, recorder, drawn, data, self)

    return __init__


def _built(recorder: Recorder, drawn: DrawnRows | None, data: _DataSets, loader: Any) -> None:
    site = recorder.sites.find()
    dataset = loader.dataset
    entry = Loader(
        recorder.batches.loader_index(loader),
        loader.batch_size,
        loader.num_workers,
        bool(loader.drop_last),
        _class(loader.sampler),
        getattr(loader.sampler, "shuffle", None),
        _class(loader.batch_sampler),
        type(dataset).__name__,
        _length(dataset),
        _length_of_loader(loader),
        site,
        _definition(recorder.sites, loader.collate_fn),
        _definition(recorder.sites, type(dataset).__iter__)
        if isinstance(dataset, IterableDataset)
        else None,
        _number_of(data, dataset),
        _names_of(dataset, sys._getframe(1)),
    )
    if drawn is not None:
        recorder.guard("drawn rows", drawn.built, loader, entry.index)
    # statistics of the data may be gone once the function that builds loaders has returned
    if recorder.fitted is not None:
        recorder.guard("fitted", recorder.fitted.look, sys._getframe(1))
    known = recorder.facts.setdefault("loaders", [])
    if recorder.vocabularies is not None and len(known) < 4:
        recorder.guard("vocabularies", recorder.vocabularies.look_early, sys._getframe(1))
    if len(known) < MAX_LOADERS:
        known.append(entry)


def _number_of(data: _DataSets, dataset: Any) -> int | None:
    """Of the object that holds the rows; None where it cannot be told whether it is the same one."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    for number, known in enumerate(data):
        if known() is dataset:
            return number
    if not isinstance(dataset, Dataset) or len(data) >= MAX_LOADERS:
        return None
    data.append(weakref.ref(dataset))
    return len(data) - 1


def _names_of(dataset: Any, frame: types.FrameType | None) -> tuple[str, ...]:
    """What functions of the script on the way here call it: variables, and attributes of their own
    objects; the outermost first.
    """
    found: list[str] = []
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            held = variables_of(frame)
            for scope in (held, getattr(held.get("self"), "__dict__", {})):
                found += [name for name, value in list(scope.items()) if value is dataset]
        frame = frame.f_back
    return tuple(dict.fromkeys(reversed(found)))[:MAX_NAMES]


def _class(value: Any) -> str | None:
    return type(value).__name__ if value is not None else None


def _length(owner: Any) -> int | None:
    try:
        return len(owner)
    except (TypeError, NotImplementedError, ValueError):
        return None


def _length_of_loader(loader: Any) -> int | None:
    """Asked of a loader over an iterable data set, torch remembers the answer and from then on
    warns of every sample beyond it. The script did not ask.
    """
    remembered = getattr(loader, "_IterableDataset_len_called", None)
    try:
        return _length(loader)
    finally:
        if getattr(loader, "_IterableDataset_len_called", None) is not remembered:
            loader._IterableDataset_len_called = remembered


def _definition(sites: SiteFinder, function: Any) -> Site | None:
    """Where a function of the user's own is defined; None for a library's."""
    function = getattr(function, "func", function)  # functools.partial
    function = getattr(function, "data_collator", function)  # the wrapper of Hugging Face's Trainer
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    if code is None or not is_user_file(code.co_filename):
        return None
    return Site(sites.shown(code.co_filename), code.co_firstlineno, code.co_name)


def _make_iter(recorder: Recorder, original: Any) -> Any:
    brief = recorder.brief

    def __iter__(self: Any) -> Any:
        kept = getattr(self, "_iterator", None)
        if kept is not None:
            recorder.batches.rows.begins_again(kept)
        iterator = original(self)
        if recorder.is_process():
            brief.leave()
            recorder.guard("loader", recorder.batches.started, self, iterator)
        return iterator

    return __iter__


def _make_next(recorder: Recorder, original: Any) -> Any:
    brief = recorder.brief

    def __next__(self: Any) -> Any:
        if not recorder.is_process():
            return original(self)
        began, heard, known = time.perf_counter(), Hearings.spent_s, recorder.guard.total_s
        value = original(self)
        # operators that put samples together are listened to: that is no waiting of the script's
        listened_s = Hearings.spent_s - heard
        wait_s = time.perf_counter() - began - listened_s
        recorder.guard.add(max(0.0, listened_s - (recorder.guard.total_s - known)))
        recorder.guard("batch rows", recorder.batches.rows.came, self, value)
        is_brief = brief.on and recorder.threads.ident == get_ident()
        if not (is_brief and brief(brief.batch, self, wait_s, value)):
            recorder.guard("batch", _fetched, recorder, self, wait_s, value)
        return value

    return __next__


def _make_next_index(recorder: Recorder, drawn: DrawnRows | None, original: Any) -> Any:
    def _next_index(self: Any) -> Any:
        given = original(self)
        if recorder.is_process():
            recorder.guard("batch rows", recorder.batches.rows.drew, self, given)
            if drawn is not None:
                recorder.guard("drawn rows", drawn.drew, self, given)
        return given

    return _next_index


def _fetched(recorder: Recorder, iterator: Any, wait_s: float, value: Any) -> None:
    recorder.depth = 0
    recorder.brief.fetched(iterator)
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


def _make_set_epoch(recorder: Recorder, original: Any) -> Any:
    def set_epoch(self: Any, epoch: int) -> None:
        original(self, epoch)
        if recorder.is_host():
            recorder.guard("set_epoch", recorder.event, "set_epoch", {"epoch": int(epoch)})

    return set_epoch
