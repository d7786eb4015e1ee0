"""From an empty folder to a graded answer: the machine time of `sawbones practise`, its scripts, and
`sawbones practise answer`, by level, without a network.

    python benchmarks/practise_time.py --out benchmarks/results/practise_time_cpu_202611.md

The answer names the faults, the lines, a claim, a trial and the patch, so that the grader runs all
it ever runs: two runs of the command, the trial, the patch, the expert's path. Where `unshare` may
cut the network off, it does; the page says so.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from sawbones.practise import records
from sawbones.practise.exercises import LEVELS

LIMIT_S = 600
CUT_OFF = ["unshare", "--net", "--map-root-user"]
POINTS = re.compile(r"^([\d.]+) of 100 points", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    level: int
    seed: int
    faults: int
    begin_s: float
    script_s: float
    answer_s: float
    points: float | None

    @property
    def total_s(self) -> float:
        return self.begin_s + self.script_s + self.answer_s


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1, help="per level")
    parser.add_argument("--first-seed", type=int, default=7)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    offline = subprocess.run([*CUT_OFF, "true"], capture_output=True).returncode == 0
    rows = []
    for level in LEVELS:
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            rows.append(measured(level, seed, CUT_OFF if offline else []))
            print(rows[-1], flush=True)
    text = page(rows, offline)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


def measured(level: int, seed: int, cut_off: list[str]) -> Row:
    with tempfile.TemporaryDirectory(prefix="practise-") as scratch:
        os.environ["XDG_STATE_HOME"] = f"{scratch}/state"
        desk = Path(scratch, "desk")
        desk.mkdir()
        sawbones = [*cut_off, sys.executable, "-m", "sawbones", "practise"]
        begin_s, _ = timed([*sawbones, "--level", str(level), "--seed", str(seed)], desk)
        folder = desk / "exercise-1"
        script_s, _ = timed([*cut_off, sys.executable, "train.py"], folder)  # a person looks first
        exercise = records.of_folder(folder).exercise(folder)
        (folder / "fix.patch").write_text(exercise.fix, encoding="utf-8")
        said = [argument for one in exercise.faults or ("none",) for argument in ("--fault", one)]
        said += [argument for one in sorted(exercise.lines) for argument in ("--line", str(one))]
        said += ["--because", "measured by the benchmark", "--claim", "try lr=0.1 does not heal"]
        said += ["--claim", "crashes" if level == 1 else "steps > 0"]
        said += ["--fix", "fix.patch"] if exercise.faults else []
        answer_s, printed = timed([*sawbones, "answer", "--html", "card.html", *said], desk)
        found = POINTS.search(printed)
        points = float(found[1]) if found else None
        return Row(level, seed, len(exercise.faults), begin_s, script_s, answer_s, points)


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=2 * LIMIT_S)
    return time.monotonic() - began, done.stdout


def page(rows: list[Row], offline: bool) -> str:
    longest = max(row.total_s for row in rows)
    network = "The network was cut off." if offline else "The network could not be cut off here."
    lines = [
        "# From an empty folder to a graded answer",
        "",
        f"`python benchmarks/practise_time.py`, {time.strftime('%Y-%m-%d')}, torch "
        f"{torch.__version__}, {platform.machine()}, {os.cpu_count()} cores, "
        f"threads: {torch.get_num_threads()}, load {os.getloadavg()[1]:.1f}. {network}",
        "",
        f"The longest took {longest:.0f} s of the {LIMIT_S} s that the limit of ten minutes is.",
        "",
        "| level | seed | faults | practise, s | python train.py, s | answer, s | in all, s | points |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.level} | {r.seed} | {r.faults} | {r.begin_s:.0f} | {r.script_s:.0f} | "
        f"{r.answer_s:.0f} | {r.total_s:.0f} | {'-' if r.points is None else f'{r.points:g}'} |"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
