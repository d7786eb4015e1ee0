"""loop.storage-stall by the steps that sleep: habits count, single checkpoints do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sawbones.faults.loop.storage_stall.check import check
from sawbones.schema import Ending, Run, Site
from sawbones.schema.cpu import CpuTime
from sawbones.schema.run import STEP_COLUMNS
from sawbones.schema.standing import Standing, StorageWait
from sawbones.stats.waiting import waiting

STEPS = 60
WRITE = StorageWait("write", "/mnt/store/last.pt", 3.0, 60, Site("train.py", 9))


def _run(stalled: dict[int, float], step_ms: float) -> Run:
    steps = {name: np.zeros(STEPS) for name in STEP_COLUMNS}
    steps["step"] = np.arange(float(STEPS))
    steps["step_ms"] = np.full(STEPS, step_ms)
    steps["data_wait_ms"] = np.full(STEPS, step_ms - 5)
    standing = Standing(600, True, 0, (), (WRITE,), tuple(stalled.items()))
    return Run(
        "train.py",
        (),
        "",
        {},
        Ending("finished"),
        steps=steps,
        standing=standing,
        cpu_time=CpuTime(10.0, 1.0),
    )


def test_a_store_that_takes_most_of_every_step_is_named_by_its_line() -> None:
    (found,) = check(_run(dict.fromkeys(range(STEPS), 50.0), 70.0))
    assert found.status == "likely" and "last.pt" in found.title
    assert [site.line for site in found.where] == [9]


def test_on_a_machine_with_more_work_than_cores_it_is_a_suspicion() -> None:
    run = _run(dict.fromkeys(range(STEPS), 50.0), 70.0)
    (found,) = check(replace(run, cpu_time=CpuTime(10.0, 20.0)))
    assert found.status == "suspected"


def test_one_slow_checkpoint_per_epoch_is_silent() -> None:
    assert list(check(_run({19: 400.0, 39: 400.0, 59: 400.0}, 450.0))) == []


def test_flushes_of_a_few_milliseconds_are_silent() -> None:
    assert list(check(_run(dict.fromkeys(range(STEPS), 6.0), 8.0))) == []


def test_what_a_loop_without_a_loader_sleeps_in_writes_is_no_wait_for_data() -> None:
    found = waiting(_run(dict.fromkeys(range(STEPS), 60.0), 70.0))
    assert found is not None and found.wait_ms == 5.0
