"""`--on-finding`: each thing that was found is given to a command or posted to a URL, once.

A thread of its own does that, so training never waits for it: what cannot be delivered is tried
again, and at the end of the run the last ones get a few seconds. A value of the user's data is
never part of it.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from sawbones.masking import mask
from sawbones.observe.saying import say

TRIES = 4
FIRST_WAIT_S = 0.5  # before the second try; twice as long before each further one
ANSWER_S = 10.0  # for a service to answer, or a command to end
AT_THE_END_S = 8.0  # for what is still under way when the script has ended


class Alerts:
    """`targets`: URLs, and commands for the shell that get the JSON on their standard input."""

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = tuple(targets)
        self._waiting: queue.SimpleQueue[tuple[str, bytes, int, float]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open = 0  # messages that are neither delivered nor given up
        self._failed: dict[str, str] = {}
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        if not self.targets:
            return
        body = mask(json.dumps(message, ensure_ascii=False)).encode()
        with self._lock:
            self._open += len(self.targets)
        for target in self.targets:
            self._waiting.put((target, body, 1, 0.0))
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="sawbones-alerts")
            self._thread.daemon = True  # the script's end does not wait for a service
            self._thread.start()

    def finish(self) -> None:
        """The last ones are given a few seconds; what failed is said."""
        until = time.monotonic() + AT_THE_END_S
        while self._open and time.monotonic() < until:
            time.sleep(0.02)
        for target, why in self._failed.items():
            say(f"sawbones: --on-finding {target}: {why}")
        if self._open:
            say(f"sawbones: --on-finding: {self._open} messages were not delivered in time")

    def _deliver(self) -> None:
        while True:
            target, body, tried, not_before = self._waiting.get()
            time.sleep(max(0.0, not_before - time.monotonic()))
            why = _post(target, body) if is_url(target) else _run(target, body)
            if why and tried < TRIES:
                wait = FIRST_WAIT_S * 2 ** (tried - 1)
                self._waiting.put((target, body, tried + 1, time.monotonic() + wait))
                continue
            with self._lock:
                self._open -= 1
            if why:
                self._failed[target] = f"{why} (tried {TRIES} times)"


def is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _post(url: str, body: bytes) -> str:
    """Why it was not taken, or nothing."""
    request = urllib.request.Request(
        url, body, {"Content-Type": "application/json", "User-Agent": "sawbones"}
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S):
            return ""
    except (OSError, ValueError) as error:  # HTTP statuses, refused connections, odd addresses
        return str(error)


def _run(command: str, body: bytes) -> str:
    said = json.loads(body)
    told = {f"SAWBONES_{name.upper()}": str(said[name]) for name in ("kind", "name", "step")}
    try:
        done = subprocess.run(
            command,
            shell=True,
            input=body,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | told,
            timeout=ANSWER_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"ended with status {done.returncode}" + "".join(f": {line}" for line in last)
