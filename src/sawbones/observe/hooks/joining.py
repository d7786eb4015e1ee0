"""Where arrays become tensors and lists of arrays become one: for the signal of shared rows."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.deep import DeepObserver
from sawbones.observe.patches import Patches
from sawbones.observe.signals.shared_rows import SharedRowsLog, is_list_of_arrays
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.journal or "numpy" not in sys.modules:
        return
    log = SharedRowsLog()
    recorder.at_the_end.append(lambda: recorder.facts.__setitem__("shared_rows", log.record()))
    patches.replace(torch, "from_numpy", partial(_make_from_numpy, recorder, log))
    patches.replace(sys.modules["numpy"], "stack", partial(_make_stack, recorder, log))
    if recorder.journal is not None:
        recorder.journal.on_array = partial(_heard, recorder, log)


def _listens(recorder: Recorder, log: SharedRowsLog) -> bool:
    return log.has_time and recorder.active and not DeepObserver.busy and recorder.is_host()


def _heard(recorder: Recorder, log: SharedRowsLog, given: Any, start: Any) -> None:
    """What torch.tensor or torch.as_tensor was given."""
    if not _listens(recorder, log):
        return
    if is_list_of_arrays(given):
        recorder.guard("shared rows", log.joined, given, recorder.sites.find(start))
    else:
        recorder.guard("shared rows", log.passed, given)


def _make_from_numpy(recorder: Recorder, log: SharedRowsLog, original: Any) -> Any:
    def from_numpy(*args: Any, **kwargs: Any) -> Any:
        if args and not is_tracing() and _listens(recorder, log):
            recorder.guard("shared rows", log.passed, args[0])
        return original(*args, **kwargs)

    return from_numpy


def _make_stack(recorder: Recorder, log: SharedRowsLog, original: Any) -> Any:
    def stack(*args: Any, **kwargs: Any) -> Any:
        if args and is_list_of_arrays(args[0]) and not is_tracing() and _listens(recorder, log):
            recorder.guard("shared rows", log.joined, args[0], recorder.sites.find())
        return original(*args, **kwargs)

    return stack
