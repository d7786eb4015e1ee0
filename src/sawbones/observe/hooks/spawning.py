"""Processes that the script starts to train in are watched too: their function is wrapped when they
are started.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing.process
from typing import TYPE_CHECKING, Any

from sawbones.observe.patches import Patches
from sawbones.observe.sites import is_user_file

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    numbers = itertools.count()

    def wrap(process: Any) -> None:
        target = process._target
        # torch's spawn starts its own function, which is handed the user's as its first argument,
        # or a trainer's that calls the
        # user's. Nobody starts processes that way to load data.
        through_torch = (
            getattr(target, "__module__", "") == "torch.multiprocessing.spawn" and process._args
        )
        function = process._args[0] if through_torch else target
        if recorder.for_process is None or not (through_torch or _is_users(function)):
            return
        watched = recorder.for_process(function, next(numbers))
        if through_torch:
            process._args = (watched, *process._args[1:])
        else:
            process._target = watched

    def make(original: Any) -> Any:
        def start(self: Any) -> None:
            if recorder.is_host():
                recorder.guard("spawn", wrap, self)
            original(self)

        return start

    patches.replace(multiprocessing.process.BaseProcess, "start", make)


def _is_users(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return code is not None and is_user_file(code.co_filename)
