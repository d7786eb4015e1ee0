"""Where the training thread sleeps: calls on a store count, other sleeps do not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sawbones.observe.signals.standing import StandingLog, ThreadStatus
from sawbones.observe.sites import SiteFinder
from sawbones.schema.standing import Standing

pytestmark = pytest.mark.skipif(
    not ThreadStatus(threading.get_native_id()).is_readable,
    reason="this system does not say where threads sleep",
)


def _watched(act: Callable[[], None]) -> Standing:
    recorder: Any = SimpleNamespace(
        step=7, pid=os.getpid(), facts={}, sites=SiteFinder(), guard=None
    )
    log = StandingLog(recorder, threading.get_ident(), threading.get_native_id())
    act()
    log.close()
    found: Standing = recorder.facts["standing"]
    return found


def _fill_a_pipe_that_is_read_late(seconds: float) -> None:
    reading, writing = os.pipe()
    timer = threading.Timer(seconds, lambda: os.read(reading, 1 << 17))
    timer.start()
    os.write(writing, bytes(1 << 16))
    os.write(writing, bytes(1 << 12))  # it is full: this one sleeps
    timer.join()
    os.close(reading)
    os.close(writing)


def test_a_write_that_sleeps_is_found_with_its_line_its_call_and_its_step() -> None:
    found = _watched(lambda: _fill_a_pipe_that_is_read_late(0.6))
    (wait,) = found.waits
    assert (wait.call, wait.target.partition(":")[0], wait.steps) == ("write", "pipe", 1)
    assert wait.site is not None and "this one sleeps" in wait.site.code
    ((step, slept_ms),) = found.stalled
    assert step == 7 and 200 < slept_ms <= 700


def test_other_sleeps_and_writes_that_are_buffered_do_not_count(tmp_path: Path) -> None:
    def act() -> None:
        with (tmp_path / "log").open("w") as log:
            for _ in range(30):
                print("a line", file=log, flush=True)
                time.sleep(0.01)

    assert _watched(act).stalled == ()


def test_waiting_for_what_another_process_sends_is_no_store() -> None:
    reading, writing = os.pipe()
    threading.Timer(0.3, lambda: os.write(writing, b"x")).start()
    assert _watched(lambda: os.read(reading, 1) and None).stalled == ()
