"""Recordings of the lab's patients and twins: each made once per test session, two at a time, one
thread each.

With SAWBONES_RECORDINGS=FOLDER they are kept there and read again next time; remove the folder
after a change of the recorder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

from sawbones.faults import all_checks
from sawbones.lab.ward import Bed
from sawbones.observe.options import Options, diagnosing
from sawbones.schema import Run
from sawbones.schema.sources import SourceChange
from sawbones.store import read_run
from sawbones.store.codec import from_plain, to_plain
from sawbones.trials.bench import Bench, Patient
from sawbones.trials.source_change import change_at_source
from sawbones.trials.twin import compare

# The faults that every test run takes through the contract. SAWBONES_FULL=1 takes the whole lab.
FIRST = (
    "data.labels-misaligned",
    "loop.no-zero-grad",
    "model.causal-leak",
    "loss.label-shift",
    "loss.double-softmax",
)

TWIN_STEPS = 12


class Recordings:
    def __init__(self, folder: Path, beds: Sequence[Bed]) -> None:
        self.folder = folder
        self.beds = {bed.fault: bed for bed in beds}
        self._pool = ThreadPoolExecutor(2)
        self._made: dict[tuple[str, bool], Future[Path]] = {}
        for bed in beds:
            for healthy in (False, True):
                self._made[bed.fault, healthy] = self._pool.submit(self._record, bed, healthy)
        self.read = cache(self._read)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _read(self, fault: str, healthy: bool) -> Run:
        folder = self._made[fault, healthy].result()
        run = read_run(folder / "run")
        if (folder / "second").exists():
            run = replace(run, twin_run=compare(run, read_run(folder / "second")))
        changed = folder / "source_change.json"
        if changed.exists():
            told = from_plain(SourceChange, json.loads(changed.read_text(encoding="utf-8")))
            run = replace(run, source_change=told)
        return run

    def _record(self, bed: Bed, healthy: bool) -> Path:
        made = self.folder / f"{bed.fault}-{'healthy' if healthy else 'broken'}"
        made.mkdir(parents=True, exist_ok=True)
        # Several test processes may share the folder: the first to come records, the others wait
        # for it.
        with (made / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (made / "done").exists():
                return made
            work = made / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            shutil.copy(bed.script, work)
            with Bench(
                Patient(bed.script.name, ("--healthy",) if healthy else (), work, bed.num_ranks),
                200,
            ) as bench:
                run = bench.execute(diagnosing(max_steps=bed.steps), run_folder=made / "run")
                if "source_change" in _signals(bed.fault):
                    told = json.dumps(to_plain(change_at_source(bench, run)))
                    (made / "source_change.json").write_text(told, encoding="utf-8")
                if "twin_run" in _signals(bed.fault):
                    plain = Options(
                        deep_steps=(), deep_every=0, max_steps=TWIN_STEPS, batch_samples=0
                    )
                    bench.execute(plain, run_folder=made / "second")
            (made / "done").touch()
        return made


def _signals(fault: str) -> tuple[str, ...]:
    return next((c.needs + c.uses for c in all_checks() if c.fault == fault), ())


def shared_folder(base: Path) -> Path:
    """One folder for all processes of a test session, or the one that the environment names."""
    if kept := os.environ.get("SAWBONES_RECORDINGS"):
        return Path(kept).absolute()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lab-recordings"
