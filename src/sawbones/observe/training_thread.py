"""Which thread trains. Only one is recorded: a hook that reads the gradients of one thread while
another changes them would crash the process. While several train, watching pauses.
"""

from __future__ import annotations

import os
import threading
import time
from threading import get_ident
from typing import TYPE_CHECKING

from sawbones.observe.interrupts import HOLDING

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_WAIT_S = 60.0  # a deep step of the other thread may take that long at most


class TrainingThread:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self.ident: int | None = None  # of the thread that made the first backward pass or step
        self.in_backward = False
        self._lock = threading.Lock()
        self._beside: set[threading.Thread] = set()  # those that have trained since watching paused
        self._was_told = False
        HOLDING.thread = get_ident()  # until then the one that starts the recording

    def is_here(self) -> bool:
        return self.ident is None or self.ident == get_ident() or self._is_on_behalf()

    def trains(self) -> bool:
        if self.ident == get_ident():
            return True
        if self.ident is None or not self._is_alive():
            self._becomes(get_ident())
            return True
        if self._is_on_behalf():
            return True
        self._pause()
        self._wait_for_hooks()
        return False

    def resumes(self) -> bool:
        """Asked by backward passes that are not watched: whether that is the pause, and of the
        threads that trained in it only this one is left.
        """
        recorder, here = self._r, threading.current_thread()
        if os.getpid() != recorder.pid or (HOLDING.depth and HOLDING.thread == get_ident()):
            return False  # a fork, where the lock may never be free, or a pass of our own
        with self._lock:
            if self._beside:
                self._beside.add(here)
                if any(thread is not here and thread.is_alive() for thread in self._beside):
                    return False
                self._beside.clear()
                self._becomes(get_ident())
                recorder.guard.stopped, recorder.active = False, True
                recorder.guard("backward", self._begin_anew)
                recorder.facts.pop("stopped", None)
        return recorder.trains_here()  # another one may have gone on meanwhile

    def _begin_anew(self) -> None:
        """What came before the pause is not taken for what led to this step."""
        self._r.drop_deep()
        self._r.let_go()
        self._r.microstep = 0
        self._r.steps.begin_anew()

    def _pause(self) -> None:
        recorder, why = self._r, "several threads train at the same time"
        with self._lock:
            self._beside.update(t for t in threading.enumerate() if t.ident == self.ident)
            self._beside.add(threading.current_thread())
            recorder.active = False
            recorder.guard.stopped = True
            recorder.facts["stopped"] = why
            if recorder.deep is not None:
                recorder.deep.pause()
        if not self._was_told:
            self._was_told = True
            recorder.guard.say(
                f"{why}. Watching pauses at step {recorder.step} until one of them is left. "
                "Training continues unchanged."
            )

    def _is_on_behalf(self) -> bool:
        """A thread of the autograd engine, which Python did not start, during a backward pass:
        optimizers that step inside of it.
        """
        return self.in_backward and all(t.ident != get_ident() for t in threading.enumerate())

    def _is_alive(self) -> bool:
        return any(t.ident == self.ident for t in threading.enumerate())

    def _becomes(self, ident: int) -> None:
        self._wait_for_hooks()
        self.ident = HOLDING.thread = ident

    def _wait_for_hooks(self) -> None:
        """Until the other thread is out of our code."""
        began = time.monotonic()
        while (
            HOLDING.depth and HOLDING.thread != get_ident() and time.monotonic() - began < _WAIT_S
        ):
            time.sleep(0.0005)
