"""How soon is a fault that is visible at once told? `sawbones run` on the lab's patients, the step
of the first right live warning.

    python benchmarks/latency.py                                  # every fault listed here
    python benchmarks/latency.py --only 'model.*' --out FILE.md

Healthy twins run too: a live warning on one of them is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from sawbones.scoring.cases import Case, lab_cases

BUDGET = 5  # steps
# Masks, shifts, what the loss is given, the graph, what the optimizer holds, order of events: a few
# steps show all there is to see.
AT_ONCE = (
    "model.mask-polarity",
    "model.mask-shape",
    "model.mask-dtype",
    "model.causal-leak",
    "model.over-masking",
    "model.softmax-axis",
    "model.attention-scale",
    "model.head-mixing",
    "model.cross-sample-leak",
    "model.position-broadcast",
    "model.detached-graph",
    "model.unregistered-module",
    "loss.double-softmax",
    "loss.double-sigmoid",
    "loss.label-shift",
    "loss.target-in-input",
    "loss.silent-broadcast",
    "loss.pad-not-ignored",
    "loss.reduction-sum",
    "pipeline.mask-mismatch",
    "optimizer.missing-params",
    "optimizer.stale-params",
    "optimizer.decay-on-norm-bias",
    "optimizer.coupled-l2",
    "loop.no-zero-grad",
    "loop.zero-grad-misplaced",
    "loop.clip-before-unscale",
    "loop.clip-after-step",
    "loop.scaler-misuse",
    "loop.scheduler-order",
    "loop.accumulation-unscaled",
)
_LIVE = re.compile(r"sawbones: step (\d+): (\S+) ")
_FOUND = re.compile(r"  found      (\S+) \((?:proven|likely)\)")
_STEPS = re.compile(r"  (\d+) steps in ")


def warnings_of(case: Case) -> list[tuple[int, str]]:
    """(step, fault) of everything said; what was only said at the end counts with the length of the
    run.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "sawbones",
            "run",
            "--out",
            f"{folder}/run",
            str(case.script),
            *case.argv,
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        said = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=600, env=environment
        ).stderr
    live = [(int(step), fault) for step, fault in _LIVE.findall(said)]
    length = _STEPS.search(said)
    at_the_end = [(int(length.group(1)) if length else 0, fault) for fault in _FOUND.findall(said)]
    return live + [
        (step, fault) for step, fault in at_the_end if fault not in {known for _, known in live}
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="GLOB")
    parser.add_argument("--out", type=Path, help="also write the table there")
    given = parser.parse_args()
    lines = ["| fault | steps until told | also told | told on the twin |", "|---|---|---|---|"]
    soon = total = false = 0
    twins = {case.name: case for case in lab_cases() if case.fault is None}
    for case in lab_cases():
        if case.fault not in AT_ONCE or not fnmatch(case.fault, given.only):
            continue
        said = warnings_of(case)
        own = [step for step, fault in said if fault == case.fault]
        others = sorted({f"{fault} (step {step})" for step, fault in said if fault != case.fault})
        on_twin = sorted({fault for _, fault in warnings_of(twins[f"{case.name}/twin"])})
        total += 1
        soon += bool(own) and own[0] <= BUDGET
        false += bool(on_twin)
        lines.append(
            f"| {case.fault} | {own[0] if own else '-'} | {', '.join(others) or '-'} | "
            f"{', '.join(on_twin) or '-'} |"
        )
        print(lines[-1], flush=True)
    summary = (
        f"{soon} of {total} faults told after at most {BUDGET} steps; false alarms on {false} "
        f"of {total} twins."
    )
    print(summary)
    if given.out is not None:
        command = f"`python benchmarks/latency.py{'' if given.only == '*' else ' --only ' + repr(given.only)}`"
        text = "\n".join(lines)
        given.out.write_text(
            f"# How soon a fault is told by `sawbones run`\n\n{command}\n\n{summary}\n\n{text}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
