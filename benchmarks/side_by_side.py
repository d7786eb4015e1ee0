"""Cases in processes side by side, one thread each; every row is on disk as soon as it is there, so that a
run which is cut short keeps what it has.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Case = tuple[Any, ...]


def rows_of(
    judge: Callable[..., Row],
    cases: Sequence[Case],
    jobs: int,
    seconds: float,
    keep: Path | None = None,
) -> Iterator[Row]:
    """A row for each case as it ends; none is begun after `seconds`. `judge` is called with the parts of a
    case; an error of its own is a row with that error. `keep` gets a line of JSON for each.
    """
    # In this process, for those that it starts: they import torch before any code of ours runs.
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
    last_begin = time.monotonic() + seconds
    waiting = iter(cases)
    running: dict[Future[Row], Case] = {}
    # A process for each case: nothing that one leaves behind reaches the next.
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        while True:
            while len(running) < jobs and time.monotonic() < last_begin:
                case = next(waiting, None)
                if case is None:
                    break
                running[pool.submit(judge, *case)] = case
            if not running:
                return
            done = next(as_completed(running))
            case = running.pop(done)
            error = done.exception()
            row = done.result() if error is None else {"case": case, "error": repr(error)[:200]}
            if keep is not None:
                with keep.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
            yield row


def read_back(files: Sequence[Path]) -> list[Row]:
    """The rows of earlier runs; a line that was cut is left out."""
    rows = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows
