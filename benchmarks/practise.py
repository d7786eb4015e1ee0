"""Exercises by seed, as `sawbones practise` gives them out: does each run, does its fault hurt beside the
same script without it, and does anything in its folder name the answer?

    python benchmarks/practise.py --seeds 40 --jobs 2 --rows rows.jsonl
    python benchmarks/practise.py --table rows.jsonl --out benchmarks/results/practise_cpu_202611.md

Both scripts run under `sawbones run` (`sawbones.practise.starting`), and the broken one has to end in an
error, in an ill symptom, in numbers that are not finite or worse by 5 %; a fault that can make a run
look better, in other numbers. One that does not hurt is replaced by that of the next seed, which is
counted here.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import torch
from side_by_side import Row, read_back, rows_of

from sawbones.practise.exercises import LEVELS, Exercise, NoExercise
from sawbones.practise.measuring import Measured
from sawbones.practise.records import Record
from sawbones.practise.starting import attempts, write
from sawbones.schema import faults

WORDS = ("inject", "sawbones.", "patient", "todo", "fixme")  # of a script, beside the faults' names


def judge(seed: int, level: int) -> Row:
    began = time.monotonic()
    row: Row = {"seed": seed, "level": level, "replaced": [], "given_out": False}
    try:
        for exercise, seen in attempts(seed, level):
            if seen is None:
                row["replaced"].append([exercise.seed, *exercise.faults])
                continue
            broken, good = seen
            row |= {
                "given_out": True,
                "made_from": exercise.seed,
                "faults": exercise.faults,
                "healthy_runs": not good.crashed,
                "ends_in_an_error": broken.crashed,
                "symptoms": sorted(broken.symptoms),
                "names_the_answer": names_the_answer(exercise, broken, good),
            }
            break
    except NoExercise as error:
        row["error"] = str(error)
    return row | {"seconds": round(time.monotonic() - began, 1)}


def names_the_answer(exercise: Exercise, broken: Measured, good: Measured) -> list[str]:
    """What gives the fault away in the folder as it is handed over, read file by file."""
    short = {fault.partition(".")[2] for fault in faults()}
    known = {*faults(), *(name for name in short if "-" in name)}  # `schedule` is a word of its own
    found = []
    with tempfile.TemporaryDirectory(prefix="exercise-") as scratch:
        os.environ["XDG_STATE_HOME"] = str(Path(scratch) / "state")
        folder = Path(scratch) / "folder"
        record = Record(uuid.uuid4().hex, exercise.seed, exercise.level, None, 20, time.time())
        write(folder, exercise, broken, good, record)
        for file in sorted(folder.iterdir()):
            text = (file.name + "\n" + file.read_text(encoding="utf-8")).lower()
            words = WORDS if file.suffix == ".py" else ()
            found += [f"{file.name}: {name}" for name in (*sorted(known), *words) if name in text]
    return found


def table(rows: list[Row], asked: str) -> str:
    lines = [
        "# Exercises by seed",
        "",
        f"`{asked}`, {time.strftime('%Y-%m-%d')}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, one thread each.",
        "",
        "| level | exercises | given out | the healthy script runs | ends in an error | a seed was replaced "
        "| the folder names the answer |",
        "|---|---|---|---|---|---|---|",
    ]
    for level in LEVELS:
        those = [row for row in rows if row.get("level") == level]
        given = [row for row in those if row["given_out"]]
        counts = (
            len(those),
            len(given),
            sum(row["healthy_runs"] for row in given),
            sum(row["ends_in_an_error"] for row in given),
            sum(bool(row["replaced"]) for row in those),
            sum(bool(row["names_the_answer"]) for row in given),
        )
        lines.append(f"| {level} | " + " | ".join(map(str, counts)) + " |")
    given = [row for row in rows if row.get("given_out")]
    declared = Counter(fault for row in given for fault in row["faults"])
    quiet = Counter(fault for row in rows for _, *gone in row.get("replaced", ()) for fault in gone)
    hidden = ", ".join(f"{fault} {n} of {declared[fault] + n}" for fault, n in quiet.most_common())
    seconds = sorted(row["seconds"] for row in rows if "seconds" in row)
    lines += [
        "",
        f"{len(given)} exercises given out, {len(declared)} different faults, "
        f"{sum(not row['faults'] for row in given)} without one.",
        f"Did not hurt and was replaced by the next seed: {hidden or 'none'}.",
    ]
    if seconds:
        median, longest = seconds[len(seconds) // 2], seconds[-1]
        lines.append(
            f"Seconds for one, trying it included: {median:g} median, {longest:g} at most."
        )
    for row in rows:
        if "error" in row:
            lines.append(
                f"- no result: {row.get('case') or [row['seed'], row['level']]}: {row['error']}"
            )
        elif row["names_the_answer"]:
            lines.append(f"- {row['seed']}, level {row['level']}: {row['names_the_answer']}")
    return "\n".join([*lines, ""])


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--seeds", type=int, default=40, help="per level")
    p.add_argument("--first-seed", type=int, default=0)
    p.add_argument("--jobs", type=int, default=1, help="exercises at a time")
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
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        cases = [(seed, level) for seed in seeds for level in LEVELS]
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
