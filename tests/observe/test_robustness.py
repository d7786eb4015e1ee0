"""Whatever happens to the recording, training goes on; whatever happens to the training, the
recording can be read.
"""

from __future__ import annotations

import json
import math
import random
import signal
import sqlite3
import subprocess
import threading
import time

import numpy as np
import pytest
import torch
from processes import Bench
from torch import nn

import sawbones
from sawbones.observe.census import has_parameters
from sawbones.observe.guard import RAISE, Guard
from sawbones.observe.options import Options
from sawbones.report.summary import run_summary
from sawbones.store import read_run

TRAIN = """
    import json, sys, time
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(16, 8)
    for i in range({steps}):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        print(json.dumps([i, time.time(), loss.item()]), flush=True)
        time.sleep({pause})
    sys.exit(7)
"""


def test_a_killed_run_opens_and_misses_a_second_at_most(bench: Bench) -> None:
    process = subprocess.Popen(
        bench.command(bench.script(TRAIN.format(steps=10**6, pause=0.004))),
        cwd=bench.folder,
        env=bench.environment(True),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        process.stdout.readline()
        time.sleep(1.5 + random.Random(1).random())
        process.send_signal(signal.SIGKILL)
        lines = [
            json.loads(line) for line in process.stdout.read().splitlines() if line.endswith("]")
        ]
    run = read_run(bench.folder / "run")
    assert run.ending.kind == "killed" and run.num_steps > 10
    missing = [when for i, when, _ in lines if i >= run.num_steps]
    assert not missing or lines[-1][1] - missing[0] < 1.0
    recorded = {i: loss for i, _, loss in lines}
    np.testing.assert_array_equal(run.steps["loss"][1:10], [recorded[i] for i in range(1, 10)])


def losses(stdout: str) -> list[float]:
    return [json.loads(line)[2] for line in stdout.splitlines()]


def warnings(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("sawbones:")]


@pytest.fixture(scope="module")
def bare(benches) -> list[float]:
    return losses(benches("bare").bare(TRAIN.format(steps=40, pause=0)).stdout)


def test_a_folder_that_cannot_be_written_costs_one_warning(bench: Bench, bare: list[float]) -> None:
    # It can be made when the run is started; then the script puts a file in its place.
    source = f"""
    open({str(bench.folder / "file")!r}, "w").close()
    {TRAIN.format(steps=40, pause=0).strip()}
    """
    command = bench.command(bench.script(source))
    command[command.index("--out") + 1] = str(bench.folder / "file" / "run")
    done = subprocess.run(
        command,
        cwd=bench.folder,  # in a git folder, what was not committed goes into the run folder first
        env=bench.environment(False),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 7 and losses(done.stdout) == bare
    (warning,) = warnings(done.stderr)
    assert (
        "Training continues unchanged" in warning
        and "--out FOLDER" in warning
        and "Traceback" not in done.stderr
    )


def test_a_full_disk_costs_one_warning(bench: Bench, bare: list[float]) -> None:
    limited = f"""
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    import torch
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    {TRAIN.format(steps=40, pause=0.03).strip()}
    """
    seen = bench.watched(limited, strict=False)
    assert seen.status == 7 and losses(seen.stdout) == bare
    (warning,) = warnings(seen.stderr)
    assert (
        "stopped" in warning
        and "Training continues unchanged" in warning
        and "Traceback" not in seen.stderr
    )
    assert read_run(seen.folder).script  # what was there before the disk was full can be read


def test_a_hook_that_raises_is_switched_off_with_one_warning(
    bench: Bench, bare: list[float]
) -> None:
    source = f"""
    import torch
    from sawbones.observe import batches
    def broken(*args):
        raise RuntimeError("broken on purpose")
    batches.BatchLog.reached_model = broken
    {TRAIN.format(steps=40, pause=0).strip()}
    """
    seen = bench.watched(source, strict=False)
    assert seen.status == 7 and losses(seen.stdout) == bare
    (warning,) = warnings(seen.stderr)
    assert warning.startswith(
        "sawbones: forward failed at step 0 (broken on purpose) and is off from here. "
        "Training continues"
    )
    assert "broken on purpose" in (seen.folder / "sawbones.log").read_text()
    run = seen.run
    assert run.num_steps == 40 and run.off == ("forward",)


def test_a_nan_is_stored_and_shown_and_the_next_step_is_judged_as_ever(tmp_path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(8, 4)
    with sawbones.watch(
        out=tmp_path / "run", options=Options(deep_steps=(), deep_every=0, full_every=10**6)
    ) as watching:
        for step in range(40):
            optimizer.zero_grad()
            loss = model(x).square().mean() * (
                math.nan if step == 20 else 100.0 if step == 25 else 1.0
            )
            loss.backward()
            if step == 20:
                with torch.no_grad():
                    kept = [p.clone() for p in model.parameters()]
            if step == 25:
                for p in model.parameters():
                    p.grad.mul_(10)
            optimizer.step()
            if step == 20:
                with torch.no_grad():
                    for p, value in zip(model.parameters(), kept, strict=True):
                        p.copy_(value)
    run = watching.close()
    bad = np.flatnonzero(~np.isfinite(run.steps["loss"]))
    assert bad.tolist() == [20] and np.isnan(run.steps["loss"][20])
    assert (
        np.isnan(run.steps["grad_norm"][20])
        and np.isfinite(np.delete(run.steps["grad_norm"], 20)).all()
    )
    assert np.isnan(run.statistics["grad_l2"][20]).all()
    # Full statistics at once on the broken step, and again on the jump five steps later: the NaN
    # has not blinded the window.
    full = np.flatnonzero(run.statistics["grad_max"][:, 0] != -1).tolist()
    assert full == [0, 1, 2, 20, 25]
    assert "NOT FINITE at 1 steps, first at step 20" in run_summary(run)


def test_hooks_of_ours_fail_loudly_in_our_own_tests(bench: Bench) -> None:
    """Without this every other test here could pass with a hook that is silently off."""
    source = """
        import torch
        from sawbones.observe import batches
        batches.BatchLog.reached_model = None
        torch.nn.Linear(1, 1)(torch.ones(1))
    """
    assert bench.environment(True)[RAISE] == "1"
    assert bench.watched(source, strict=True).status == 1


def test_a_module_that_lists_its_parameters_itself_is_watched_like_any_other() -> None:
    class Listed(nn.Module):
        def __init__(self, *weights: nn.Parameter) -> None:
            super().__init__()
            self.weights = nn.ParameterList(weights)

        def parameters(self, recurse: bool = True) -> nn.ParameterList:
            return self.weights

    assert has_parameters(Listed(nn.Parameter(torch.zeros(2))))
    assert not has_parameters(Listed())


def test_guarded_code_calls_guarded_code_in_any_thread() -> None:
    guard, found = Guard(), []
    thread = threading.Thread(
        target=lambda: found.append(guard("outer", lambda: guard("inner", lambda: 3))), daemon=True
    )
    thread.start()
    thread.join(timeout=10)
    assert found == [3]


MANY_MODELS = """
import torch
torch.manual_seed(0)
kept = []
for number in range(12):
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(number % 5 + 1)])
    kept.append(model)
    model(torch.randn(3, 4)).square().mean().backward()
    if number % 3 == 0:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
    model(torch.randn(3, 4)).square().mean().backward()
"""


def test_statistics_belong_to_the_parameters_they_were_taken_of(bench):
    """A test suite is such a program: one model after the other, most of them never updated."""
    outcome = bench.watched(MANY_MODELS)
    assert outcome.status == 0, outcome.stderr
    with sqlite3.connect(outcome.folder / "run.db") as db:
        sizes = {i: len(json.loads(t)) for i, t in db.execute("SELECT id, tensors FROM layouts")}
        rows = db.execute("SELECT layout, columns, data FROM tensor_rows").fetchall()
    db.close()
    assert rows and all(
        len(data) == 4 * sizes[layout] * len(columns.split(",")) for layout, columns, data in rows
    )
    assert outcome.run.num_steps >= 1
