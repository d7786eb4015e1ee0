"""The guard: an error of ours switches off the hook that raised it, is logged once, and never
reaches the host.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from sawbones.masking import mask
from sawbones.observe.interrupts import HOLDING
from sawbones.observe.saying import say
from sawbones.observe.sites import is_user_file
from sawbones.store.private import make_private_file

# These push and pop function modes and call the model under them.
_OWN_MODES = {"deep", "crash", "journal"}
# Own tests set this, so that a broken hook fails them instead of going quiet.
RAISE = "SAWBONES_RAISE"


class Guard:
    def __init__(self, folder: Path | None = None, step: Callable[[], int] = lambda: 0) -> None:
        self.off: set[str] = set()
        self.spent_s = 0.0  # time spent in own code since the last reading
        self.total_s = 0.0  # the same since the run began
        self.entered = 0.0  # when own code was last begun
        self.stopped = False  # nothing is watched any more
        self.on_interrupt: Callable[[], None] = lambda: None
        self._folder = folder
        self._step = step
        self._raise = bool(os.environ.get(RAISE))
        self._elsewhere = threading.RLock()  # guarded code calls guarded code
        # not at the top: the launcher reads this file before the script has imported torch
        import torch

        from sawbones.observe.unseen import unseen, without_dispatch_modes

        self._unseen = unseen
        self._without_dispatch_modes = without_dispatch_modes
        self._grad_mode = torch.is_grad_enabled
        self._set_grad_mode = torch._C._set_grad_enabled

    def __call__(self, name: str, act: Callable[..., Any], *args: Any) -> Any:
        """Run one piece of own code; returns None when it is switched off or fails."""
        if name in self.off:
            return None
        holding = HOLDING
        if holding.thread != threading.get_ident():
            return self._in_another_thread(name, act, *args)
        grad = self._grad_mode()
        began = time.perf_counter()
        holding.depth += 1
        if holding.depth == 1:
            self.entered = began
        try:
            if self.stopped:
                return None
            with self._without_dispatch_modes() if name in _OWN_MODES else self._unseen():
                return act(*args)
        except BaseException as error:
            self.caught(name, error, grad)
            return None
        finally:
            holding.depth -= 1
            if not holding.depth:
                self.add(time.perf_counter() - began)
                if holding.waiting:
                    holding.deliver()

    def add(self, passed_s: float) -> None:
        """Own work that took this long."""
        self.spent_s += passed_s
        self.total_s += passed_s

    def _in_another_thread(self, name: str, act: Callable[..., Any], *args: Any) -> Any:
        """Not the thread that trains: one that builds or loads something for it, or autograd's."""
        with self._elsewhere:
            if self.stopped:
                return None
            try:
                with self._without_dispatch_modes() if name in _OWN_MODES else self._unseen():
                    return act(*args)
            except Exception as error:
                self.fail(name, error)
                return None

    def caught(self, name: str, error: BaseException, grad: bool | None) -> None:
        """Ours is noted, what the script threw into our code from outside goes on to the script."""
        if isinstance(error, Exception) and not is_from_outside(error):
            self.fail(name, error)
            return
        if type(error).__module__ != "sawbones.observe.recorder":  # not our own end of a run
            if grad is not None:
                self._set_grad_mode(grad)
            self.on_interrupt()
        raise error

    def fail(self, name: str, error: Exception) -> None:
        if self._raise:
            raise error
        self.off.add(name)
        where = f" Details: {self._folder / 'sawbones.log'}" if self._folder else ""
        first = (str(error) or type(error).__name__).splitlines()[0]
        self.say(
            f"{name} failed at step {self._step()} ({first}) and is off from here. "
            f"Training continues unchanged.{where}"
        )
        self.log("".join(traceback.format_exception(error)))

    def say(self, text: str) -> None:
        line = f"sawbones: {text}"
        say(line)
        self.log(line)

    def log(self, text: str) -> None:
        if self._folder is None:
            return
        try:
            path = make_private_file(self._folder / "sawbones.log")
            with path.open("a", encoding="utf-8") as log:
                log.write(mask(text.rstrip()) + "\n")
        except OSError:
            pass  # a read-only folder or a full disk must not stop training


# Packages whose exceptions our own code may meet.
_OURS = {"sawbones", "torch", "numpy", *sys.stdlib_module_names}
# What code throws into a thread to end it, of the classes that Python has itself.
_THROWN = (TimeoutError, InterruptedError)


def is_from_outside(error: BaseException) -> bool:
    """An exception of a class that our code does not raise, where no code of its own package ran:
    another thread threw it into this one. (What signal handlers raise waits until our code is
    done.)
    """
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or is_user_file(tb.tb_frame.f_code.co_filename):
        return False
    if type(error) in _THROWN:
        return not error.args  # thrown in as a class, without a text
    name = type(error).__module__
    file = str(getattr(sys.modules.get(name), "__file__", None) or "")
    if file and is_user_file(file):
        return True
    package = name.partition(".")[0]
    is_foreign = file.endswith(".py") and package not in _OURS and not error.args
    return is_foreign and _package_of(tb.tb_frame) != package


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
