"""Curves of recorded runs, one symptom each, for `sawbones practise drill curves`:
src/sawbones/practise/recorded_curves.json.

    python benchmarks/recorded_curves.py         the lab's patients whose fault has shown such a symptom
                                                 before (src/sawbones/lookup/seen.toml)
    python benchmarks/recorded_curves.py --all   every patient of the lab
    python benchmarks/recorded_curves.py --own   only the scripts of benchmarks/curves; other rows stay

No patient of the lab shows one of the shapes alone that those scripts show. Each begins with its
fault. Each case is run under `sawbones run`. It counts where the recording shows exactly one symptom that
has a shape; what is kept is the mean loss of each of at most 60 stretches of its steps, and of its
evaluations, with nothing smoothed or redrawn.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sawbones import symptoms
from sawbones.lookup.curves import CURVES
from sawbones.lookup.symptom_page import seen
from sawbones.practise.claims import series
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.scoring.cases import Case, lab_cases
from sawbones.scoring.recording import recorded
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.series import end_level, start_level

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / "benchmarks" / "curves"
TABLE = ROOT / "src" / "sawbones" / "practise" / "recorded_curves.json"
MOST_POINTS, LEAST_STEPS, LEAST_HEIGHTS, DIGITS = 60, 12, 6, 4
MOST_OF_A_SYMPTOM = 8
LIMIT_S = 180


def _recorded(case: Case, folder: Path) -> Run | None:
    try:
        return recorded(case, folder, LIMIT_S)
    except (SawbonesError, subprocess.TimeoutExpired, OSError):
        return None


def curve(case: Case, run: Run) -> dict[str, Any] | None:
    """None: no symptom with a shape, several, or nothing to draw."""
    shown = [s.symptom for s in symptoms.read(run).symptoms if s.symptom in CURVES]
    if len(shown) != 1 or run.num_steps < LEAST_STEPS:
        return None
    losses = series(run, "loss")[1]
    training = stretches(losses)
    if len(set(training) - {None}) < LEAST_HEIGHTS:
        return None  # NaN from the start: there is nothing to draw
    if shown[0] == "spikes" and end_level(losses) > start_level(losses):
        return None  # it does not come down again: nobody would call that a spike
    steps, values, _ = validation_curve(run)
    return {
        "symptom": shown[0],
        "fault": case.fault,
        "script": case.name,
        "steps": run.num_steps,
        "training": training,
        "evaluation": [
            [int(step), rounded(value)] for step, value in zip(steps, values, strict=True)
        ][:MOST_POINTS],
    }


def stretches(losses: np.ndarray) -> list[float | None]:
    parts = np.array_split(losses, min(MOST_POINTS, len(losses)))
    return [rounded(float(part.mean())) for part in parts]


def rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def own_cases() -> list[Case]:
    """Their docstrings begin with the fault."""
    scripts = sorted(OWN.glob("*.py"))
    texts = [script.read_text(encoding="utf-8").lstrip('"') for script in scripts]
    return [
        Case(f"curves/{script.stem}", text.partition(":")[0], script)
        for script, text in zip(scripts, texts, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="also faults that never showed one")
    parser.add_argument("--own", action="store_true", help="only the scripts of benchmarks/curves")
    given = parser.parse_args()
    shown = {fault for symptom in CURVES for fault in seen().get(symptom, {})}
    lab = [c for c in lab_cases() if c.num_ranks == 1 and c.fault is not None]
    lab = [c for c in lab if given.all or c.fault in shown]
    cases = [*([] if given.own else lab), *own_cases()]
    found: dict[str, list[dict[str, Any]]] = {}
    if given.own:
        for row in json.loads(TABLE.read_text(encoding="utf-8")):
            if row["script"] not in {case.name for case in cases}:
                found.setdefault(row["symptom"], []).append(row)
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="curves-") as folder:
            run = _recorded(case, Path(folder))
            one = curve(case, run) if run is not None else None
        print(f"{case.name}: {one['symptom'] if one else '-'}", file=sys.stderr, flush=True)
        if one:
            found.setdefault(one["symptom"], []).append(one)
    rows = [one for name in CURVES for one in found.get(name, [])[:MOST_OF_A_SYMPTOM]]
    lines = ",\n".join(json.dumps(row) for row in rows)
    TABLE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{TABLE.name}: {len(rows)} curves of {len({r['symptom'] for r in rows})} symptoms")


if __name__ == "__main__":
    main()
