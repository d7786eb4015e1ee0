"""Exercises by seed: does each run, and does its fault hurt beside the same script without it?

    python benchmarks/practise.py --seeds 20 --out benchmarks/results/practise_cpu_202611.md

Each is tried as `sawbones practise` tries it before it gives it out (`sawbones.practise.starting`):
both scripts run under `sawbones run`, and the broken one has to end in an error, in an ill symptom, in
numbers that are not finite or worse by 5 %; a fault that can make a run look better, in other
numbers. What does not is not given out: the next seed is taken.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections import Counter
from pathlib import Path

import torch

from sawbones.practise.exercises import LEVELS, make
from sawbones.practise.starting import tried


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seeds", type=int, default=20, help="per level")
    p.add_argument("--first-seed", type=int, default=0)
    p.add_argument("--seconds", type=float, default=400, help="stop after so long")
    p.add_argument("--out", type=Path)
    given = p.parse_args()
    began, rows, faults = time.monotonic(), [], Counter()
    quiet: Counter[str] = Counter()
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for level in LEVELS:
            if time.monotonic() - began > given.seconds:
                break
            exercise = make(seed, level)
            seen = tried(exercise)
            shown = seen is not None
            runs = shown and not seen[1].crashed
            rows.append((level, runs, shown, shown and seen[0].crashed))
            print(seed, level, ", ".join(exercise.faults) or "none", shown, flush=True)
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
        f"{platform.machine()}.",
        "",
        "| level | exercises | given out, the healthy script runs | given out | ends in an error |",
        "|---|---|---|---|---|",
    ]
    for level in LEVELS:
        those = [row for row in rows if row[0] == level]
        sums = [sum(row[column] for row in those) for column in (1, 2, 3)]
        lines.append(f"| {level} | {len(those)} | {sums[0]} | {sums[1]} | {sums[2]} |")
    hidden = ", ".join(f"{fault} {n} of {faults[fault]}" for fault, n in quiet.most_common())
    lines += [
        "",
        f"{len(rows)} exercises with {len(faults)} different faults. One without a fault is given out "
        "as it is.",
        f"Did not hurt, and would be replaced by the next seed: {hidden or 'none'}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
