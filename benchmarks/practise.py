"""Exercises by seed: does each run, and does its fault show beside the same script without it?

    python benchmarks/practise.py --seeds 20 --out benchmarks/results/practise_cpu_202611.md

Scripts run in this process, one after the other. An exercise shows when it ends in an error, warns,
or ends with other numbers than the healthy script (5 % apart); what does not show is not given out:
`sawbones practise` then takes the next seed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import torch

from sawbones.practise.exercises import LEVELS, make
from sawbones.practise.measuring import Measured, shows
from sawbones.schema import Ending, Run


def run(text: str) -> tuple[Measured, str]:
    said = io.StringIO()
    error = ""
    with warnings.catch_warnings(record=True) as heard, contextlib.redirect_stdout(said):
        warnings.simplefilter("always")
        try:
            exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    log = [
        f"{one.category.__name__}: {one.message}" for one in heard
    ] + said.getvalue().splitlines()
    if error:
        return Measured(None, (*log, error)), error
    return Measured(Run("train.py", (), "", {}, Ending("finished")), tuple(log)), ""


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seeds", type=int, default=20, help="per level")
    p.add_argument("--first-seed", type=int, default=0)
    p.add_argument("--seconds", type=float, default=400, help="stop after so long")
    p.add_argument("--out", type=Path)
    given = p.parse_args()
    torch.set_num_threads(1)
    began, rows, faults = time.monotonic(), [], Counter()
    quiet: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for level in LEVELS:
                if time.monotonic() - began > given.seconds:
                    break
                exercise = make(seed, level)
                good, failed = run(exercise.healthy.text)
                bad, error = run(exercise.broken.text)
                shown = shows(bad, good) if exercise.faults else not shows(bad, good)
                rows.append((level, not failed, shown, bool(error)))
                faults.update(exercise.faults)
                if not shown:
                    quiet.update(exercise.faults)
    text = table(rows, faults, quiet)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


def table(
    rows: list[tuple[int, bool, bool, bool]], faults: Counter[str], quiet: Counter[str]
) -> str:
    lines = [
        "# Exercises by seed",
        "",
        f"`python benchmarks/practise.py`, {time.strftime('%Y-%m-%d')}, torch {torch.__version__}, "
        f"{platform.machine()}, one thread.",
        "",
        "| level | exercises | healthy script runs | shows | ends in an error |",
        "|---|---|---|---|---|",
    ]
    for level in LEVELS:
        those = [row for row in rows if row[0] == level]
        sums = [sum(row[column] for row in those) for column in (1, 2, 3)]
        lines.append(f"| {level} | {len(those)} | {sums[0]} | {sums[1]} | {sums[2]} |")
    hidden = ", ".join(f"{fault} {n} of {faults[fault]}" for fault, n in quiet.most_common())
    lines += [
        "",
        f"{len(rows)} exercises with {len(faults)} different faults. Of a level without faults, "
        "`shows` means that two runs agree.",
        f"Did not show, and would be replaced by the next seed: {hidden or 'none'}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
