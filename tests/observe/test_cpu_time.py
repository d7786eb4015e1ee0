"""Time limits count seconds of work, not of waiting for a core."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from sawbones.observe.cpu_time import LARGEST_STRETCH, Clock, cpu_time, own_seconds
from sawbones.schema.cpu import CpuTime

BUSY = "while True: pass"


@pytest.fixture
def crowded_core() -> Iterator[list[int]]:
    """Three processes that want one core."""
    core = min(os.sched_getaffinity(0))
    command = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\n{BUSY}"]
    children = [subprocess.Popen(command) for _ in range(3)]
    try:
        yield [child.pid for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_a_process_that_shares_its_core_gets_more_time(crowded_core: list[int]) -> None:
    began = time.monotonic()
    pid = crowded_core[0]
    while cpu_time([pid]).ran < 0.5:
        time.sleep(0.05)
    now = time.monotonic()
    assert own_seconds(now - began, [pid]) < 0.7 * (now - began)
    assert not Clock(began, 0.8 * (now - began), [pid]).is_over(now)
    assert Clock(began, 0.2 * (now - began), [pid]).is_over(now)


def test_sleeping_is_no_waiting_for_a_core() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        time.sleep(0.3)
        assert own_seconds(100.0, [child.pid]) > 99.0
        assert Clock(time.monotonic() - 10, 9.0, [child.pid]).is_over(time.monotonic())
        child.kill()


def test_a_budget_is_stretched_to_three_times_at_most(crowded_core: list[int]) -> None:
    while cpu_time(crowded_core).waited < 0.3:
        time.sleep(0.05)
    assert own_seconds(0.1, crowded_core) == pytest.approx(0.1 / LARGEST_STRETCH)


def test_a_process_that_is_gone_counts_nothing() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert cpu_time([child.pid]) == CpuTime(0.0, 0.0)
    assert own_seconds(2.0, [child.pid]) == 2.0
