"""How long until the first cause is proven? `sawbones diagnose` on the lab's patients, against the
time that the bare script needs to reach the step of the evidence.

    python benchmarks/first_answer.py --only 'model.*' --out benchmarks/results/FILE.md

Proven by an exact reading: at most 1.2 x the time to that step, plus 8 s of start. Proven by a
trial: that and the trial's own time. Wall clock, so only an idle machine gives numbers to keep; the
load is written beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from sawbones.scoring.cases import Case, lab_cases

TIMES, START_S = 1.2, 8.0
LIMIT_S = 600
# The bare script, with the time of each optimizer step. Nothing of ours runs in there.
BARE = """
import runpy, sys, time
began = float(sys.argv[1])
sys.argv = sys.argv[2:]
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
register_optimizer_step_post_hook(lambda *_: print("STEP", time.time() - began, file=sys.stderr))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_PROVEN = re.compile(r"proven after .*?: (\S+)")


@dataclass(frozen=True)
class Answer:
    fault: str
    proof: str  # "exact", "trial" or "": nothing was proven
    right: bool
    told_s: float | None
    step: int | None
    reached_s: float | None  # by the bare script, at that step
    whole_s: float  # of the diagnosis

    @property
    def allowed_s(self) -> float | None:
        return None if self.reached_s is None else TIMES * self.reached_s + START_S


def bare_times(case: Case, folder: str) -> list[float]:
    """Seconds from the start of Python to the end of each step."""
    command = [sys.executable, "-c", BARE, str(time.time()), str(case.script), *case.argv]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, env=_environment()
    )
    return [float(line.split()[1]) for line in done.stderr.splitlines() if line[:5] == "STEP "]


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def diagnosed(case: Case, folder: str) -> tuple[dict[str, float], dict[str, object], float]:
    """fault -> second at which it was told, the report, and all seconds."""
    report = Path(folder) / "report.json"
    command = [sys.executable, "-m", "sawbones", "diagnose", "--json", str(report)]
    began = time.monotonic()
    told: dict[str, float] = {}
    process = subprocess.Popen(
        [*command, str(case.script), *case.argv],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
    )
    assert process.stderr is not None
    for line in process.stderr:
        for fault in _PROVEN.findall(line):
            told.setdefault(fault, time.monotonic() - began)
    process.wait(LIMIT_S)
    whole = time.monotonic() - began
    found = json.loads(report.read_text()) if report.exists() else {"findings": []}
    return told, found, whole


def measured(case: Case) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        times = bare_times(case, folder)
        told, report, whole = diagnosed(case, folder)
    findings = [f for f in report["findings"] if f["status"] == "proven"]  # type: ignore[attr-defined]
    if not findings:
        return Answer(str(case.fault), "", False, None, None, None, whole)
    first = min(findings, key=lambda f: told.get(f["fault"], whole))
    proof = "trial" if first.get("experiment") else "exact"
    steps = [step for e in first["evidence"] for step in e["steps"] if step >= 0]
    step = min(steps, default=0)
    reached = times[min(step, len(times) - 1)] if times else None
    seconds = told.get(first["fault"], whole)
    return Answer(
        str(case.fault), proof, first["fault"] == case.fault, seconds, step, reached, whole
    )


def row(one: Answer) -> str:
    cells = [one.fault, one.proof or "not proven", "yes" if one.right else "no"]
    cells += ["-" if v is None else f"{v:.1f}" for v in (one.told_s, one.reached_s, one.allowed_s)]
    cells += ["-" if one.step is None else str(one.step), f"{one.whole_s:.1f}"]
    return f"| {' | '.join(cells)} |"


def summary(answers: list[Answer]) -> str:
    exact = [a for a in answers if a.proof == "exact" and a.told_s and a.allowed_s]
    if not exact:
        return "Nothing was proven by an exact reading."
    middle = statistics.median(a.told_s / a.allowed_s for a in exact if a.told_s and a.allowed_s)
    within = sum(a.told_s <= a.allowed_s for a in exact if a.told_s and a.allowed_s)
    return (
        f"Proven by an exact reading: {len(exact)} of {len(answers)}; told within what is allowed: "
        f"{within}; median of told / allowed: {middle:.2f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], metavar="GLOB")
    parser.add_argument("--jobs", type=int, default=1, help="patients at a time, on idle cores")
    parser.add_argument("--out", type=Path, help="also write the table there")
    given = parser.parse_args()
    wanted = given.only or ["*"]
    cases = [c for c in lab_cases() if c.fault and any(fnmatch(c.fault, g) for g in wanted)]
    heads = "fault | proof | right | told, s | step reached bare, s | allowed, s | step | whole, s"
    lines = [f"| {heads} |", f"|{'---|' * (heads.count('|') + 1)}"]
    load = os.getloadavg()[0]
    answers = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for answer in pool.map(measured, cases):
            answers.append(answer)
            lines.append(row(answer))
            print(lines[-1], flush=True)
    told = summary(answers)
    print(told)
    if given.out is not None:
        command = " ".join(
            [
                f"python benchmarks/first_answer.py --jobs {given.jobs}",
                *(f"--only {g!r}" for g in given.only),
            ]
        )
        machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
        at = f"load {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
        text = "\n".join(["# Seconds until the first cause is proven", "", f"`{command}`", ""])
        body = "\n".join([f"{machine}; {at}.", "", told, "", *lines, ""])
        given.out.write_text(f"{text}\n{body}", encoding="utf-8")


if __name__ == "__main__":
    main()
