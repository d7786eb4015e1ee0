"""The guard: an error of ours switches off the hook that raised it, is logged once, and never
reaches the host.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sawbones.masking import mask, shown
from sawbones.store.private import make_private_file

# These push and pop function modes and call the model under them.
_OWN_MODES = {"deep", "crash", "journal"}
# Own tests set this, so that a broken hook fails them instead of going quiet.
RAISE = "SAWBONES_RAISE"


class Guard:
    def __init__(self, folder: Path | None = None, step: Callable[[], int] = lambda: 0) -> None:
        self.off: set[str] = set()
        self.spent_s = 0.0  # time spent in own code since the last reading
        self._folder = folder
        self._step = step
        self._raise = bool(os.environ.get(RAISE))
        self._depth = 0
        # not at the top: the launcher reads this file before the script has imported torch
        import torch

        self._untraced = torch._C.DisableTorchFunction

    def __call__(self, name: str, act: Callable[..., Any], *args: Any) -> Any:
        """Run one piece of own code; returns None when it is switched off or fails."""
        if name in self.off:
            return None
        began = time.perf_counter()
        self._depth += 1
        try:
            if name in _OWN_MODES:
                return act(*args)
            with (
                self._untraced()
            ):  # what we compute ourselves must not appear in a trace of the host
                return act(*args)
        except Exception as error:
            self.fail(name, error)
            return None
        finally:
            self._depth -= 1
            if not self._depth:
                self.spent_s += time.perf_counter() - began

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
        line = shown(f"sawbones: {text}")
        try:
            print(line, file=sys.stderr, flush=True)
        except (OSError, ValueError):
            pass  # the host may have closed stderr
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
