"""Diagnose, with its experiments, on generated exercises: does it name the declared faults, and no others?

    python benchmarks/exercises_diagnosed.py --count 40 --out benchmarks/results/exercises_cpu_202611.md

Exercises of levels 1 to 3 in turn, one fault each, as `sawbones practise --seed` gives them out. One that could not be judged within its
budget counts as such and not as agreement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sawbones.practise.exercises import Exercise
from sawbones.practise.starting import given_out

LEVELS = (1, 2, 3)


def diagnosed(exercise: Exercise, seconds: int) -> tuple[str, list[str]]:
    """The verdict, and the faults that are likely or proven."""
    with tempfile.TemporaryDirectory(prefix="exercise-") as scratch:
        root = Path(scratch)
        (root / exercise.broken.file).write_bytes(exercise.broken.raw)
        call = ["-m", "sawbones", "diagnose", "--seconds", str(seconds), "--json", "report.json"]
        subprocess.run([sys.executable, *call, exercise.broken.file], cwd=root, capture_output=True)
        try:
            report = json.loads((root / "report.json").read_text(encoding="utf-8"))
        except OSError:
            return "no report", []
    named = [f["fault"] for f in report["findings"] if f["status"] != "suspected"]
    return str(report["verdict"]), named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--only", type=int, nargs="+", help="only these seeds out of them")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = ["| seed | level | declared | verdict | named | agrees |", "|---|---|---|---|---|---|"]
    agreed = asked = 0
    for number in range(given.count):
        if given.only and given.first_seed + number not in given.only:
            continue
        asked += 1
        seed, level = given.first_seed + number, LEVELS[number % len(LEVELS)]
        exercise, _, _ = given_out(seed, level)
        verdict, named = diagnosed(exercise, given.seconds)
        agrees = set(named) == set(exercise.faults)
        agreed += agrees
        wanted = ", ".join(exercise.faults)
        found = ", ".join(named) or "-"
        lines.append(f"| {seed} | {level} | {wanted} | {verdict} | {found} | {agrees} |")
        print(lines[-1], flush=True)
    text = f"# Diagnose on exercises\n\n{agreed} of {asked} agree.\n\n" + "\n".join(lines)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
