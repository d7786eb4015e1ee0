"""Diagnose, with its experiments, on generated exercises: does it name the declared faults, and no others?

    python benchmarks/exercises_diagnosed.py --count 40 --jobs 2 --rows rows.jsonl
    python benchmarks/exercises_diagnosed.py --table rows.jsonl --out benchmarks/results/exercises_cpu_202611.md

Exercises of levels 1 to 3 in turn, one fault each, as `sawbones practise --seed` gives them out. One
that could not be judged within its budget counts as such and not as agreement.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from side_by_side import Row, read_back, rows_of

import sawbones
from sawbones.practise.exercises import Exercise
from sawbones.practise.starting import given_out

LEVELS = (1, 2, 3)
HERE = str(Path(sawbones.__file__).resolve().parents[1])  # the scratch folder is another one


def judge(seed: int, level: int, seconds: int) -> Row:
    began = time.monotonic()
    exercise, _, _ = given_out(seed, level)
    found = diagnosed(exercise, seconds)
    named = [f["fault"] for f in found.get("findings", ()) if f["status"] != "suspected"]
    return {
        "seed": seed,
        "level": level,
        "made_from": exercise.seed,
        "declared": exercise.faults,
        "verdict": found.get("verdict", "no report"),
        "named": named,
        "agrees": set(named) == set(exercise.faults),
        "suspected": [f["fault"] for f in found.get("findings", ()) if f["status"] == "suspected"],
        "refuted": [f["fault"] for f in found.get("refuted", ())],
        "error": found.get("error", ""),
        "seconds": round(time.monotonic() - began, 1),
    }


def diagnosed(exercise: Exercise, seconds: int) -> dict[str, Any]:
    """Its report, or the end of what it said instead."""
    with tempfile.TemporaryDirectory(prefix="exercise-") as scratch:
        root = Path(scratch)
        (root / exercise.broken.file).write_bytes(exercise.broken.raw)
        call = ["-m", "sawbones", "diagnose", "--seconds", str(seconds), "--json", "report.json"]
        call = [sys.executable, *call, exercise.broken.file]
        env = os.environ | {"PYTHONPATH": HERE}
        ended = subprocess.run(call, cwd=root, capture_output=True, text=True, env=env)
        try:
            return dict(json.loads((root / "report.json").read_text(encoding="utf-8")))
        except OSError:
            return {"error": ended.stderr[-300:]}


def table(rows: list[Row], asked: str) -> str:
    judged = sorted((row for row in rows if "seed" in row), key=lambda row: row["seed"])
    agreed = sum(row["agrees"] for row in judged)
    lines = [
        "# Diagnose on exercises",
        "",
        f"`{asked}`, {time.strftime('%Y-%m-%d')}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, one thread each.",
        "",
        f"{agreed} of {len(judged)} agree.",
        "",
        "| seed | level | declared | verdict | named | agrees | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in judged:
        wanted, found = ", ".join(row["declared"]), ", ".join(row["named"]) or "-"
        cells = (row["seed"], row["level"], wanted, row["verdict"], found, row["agrees"])
        lines.append(f"| {' | '.join(map(str, cells))} | {row['seconds']:.0f} |")
    lines += [f"- no result: {row['case']}: {row['error']}" for row in rows if "case" in row]
    return "\n".join([*lines, ""])


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--first-seed", type=int, default=100)
    p.add_argument(
        "--each", type=int, default=600, metavar="SECONDS", help="budget of one diagnosis"
    )
    p.add_argument("--only", type=int, nargs="+", help="only these seeds out of them")
    p.add_argument("--jobs", type=int, default=1, help="diagnoses at a time")
    p.add_argument("--seconds", type=float, default=float("inf"), help="begin none after so long")
    p.add_argument("--rows", type=Path, metavar="FILE", help="a line of JSON for each, as it ends")
    p.add_argument(
        "--table", type=Path, nargs="+", metavar="FILE", help="only the table of these rows"
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="the table")
    given = p.parse_args()
    if given.table:
        rows = read_back(given.table)
    else:
        cases = [
            (given.first_seed + number, LEVELS[number % len(LEVELS)], given.each)
            for number in range(given.count)
            if not given.only or given.first_seed + number in given.only
        ]
        rows = []
        for row in rows_of(judge, cases, given.jobs, given.seconds, given.rows):
            rows.append(row)
            print(row, flush=True)
    text = table(rows, "python " + shlex.join(sys.argv))
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
