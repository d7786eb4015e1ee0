"""sawbones attach PID...: a training that hangs and was never watched."""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say

if TYPE_CHECKING:
    from sawbones.attach import Process, Rank

DESCRIPTION = """Look at a training that runs already, from outside: the stacks of its ranks, who waits for whom, in which collective.

Name the processes, or their launcher (torchrun). Each is read twice, and nothing of it is changed. Needs py-spy
(pip install 'sawbones[attach]') and the right to read the processes.
Exit status: 0 it goes on, 1 it stands still, 2 usage error."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones attach", DESCRIPTION)
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=2.0,
        metavar="N",
        help="between the two looks (default 2)",
    )
    p.add_argument("--stacks", action="store_true", help="print the whole stack of each rank")
    p.add_argument("--json", action="store_true", help="the same as JSON")
    p.add_argument("pid", nargs="+", type=values.whole(1), metavar="PID", help="process numbers")
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.attach import CannotRead, conclude, look_at, python_processes, read_stack
    from sawbones.attach.processes import exists

    for pid in given.pid:
        if not exists(pid):
            usage_error(f"there is no process {pid}")
    processes = python_processes(given.pid)
    if not processes:
        usage_error(f"neither process {given.pid[0]} nor any below it runs Python")
    try:
        first = [read_stack(p.pid) for p in processes]
        before = [p.cpu_seconds() for p in processes]
        began = time.monotonic()
        time.sleep(given.seconds)
        passed = time.monotonic() - began
        shares = [
            (p.cpu_seconds() - cpu) / passed for p, cpu in zip(processes, before, strict=True)
        ]
        second = [read_stack(p.pid) for p in processes]
    except CannotRead as error:
        usage_error(str(error))
    ranks = [
        _shown_from(p, look_at(p.rank, p.pid, a, b, share))
        for p, a, b, share in zip(processes, first, second, shares, strict=True)
    ]
    told = conclude(ranks)
    if given.json:
        say(json.dumps({"stuck": told.stuck, "text": told.text, "ranks": [_row(r) for r in ranks]}))
    else:
        for rank, stack in zip(ranks, second, strict=True):
            line = f" at {rank.place}" if rank.place is not None else ""
            say(f"{rank.name} (process {rank.pid}) {rank.doing}{line}")
            if given.stacks:
                for place in stack.places:
                    say(f"    {place}")
        say(told.text[0].upper() + told.text[1:])
    raise SystemExit(1 if told.stuck else 0)


def _shown_from(process: Process, rank: Rank) -> Rank:
    """Places as the user knows them: from the folder that the process was started in."""
    if rank.place is None or not process.folder:
        return rank
    relative = os.path.relpath(rank.place.file, process.folder)
    if relative.startswith(".."):
        return rank
    return replace(rank, place=replace(rank.place, file=relative))


def _row(rank: Rank) -> dict[str, object]:
    place = rank.place
    return {
        "rank": rank.rank,
        "pid": rank.pid,
        "doing": rank.doing,
        "collective": rank.collective,
        "moved": rank.moved,
        "where": {"file": place.file, "line": place.line, "function": place.function}
        if place is not None
        else None,
    }
