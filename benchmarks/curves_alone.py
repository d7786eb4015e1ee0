"""Is a symptom of the curve seen from a log alone? The lab's pipelines and a draw of the corpus are
recorded, their curves are exported, and the log is read as `sawbones diagnose --from` reads it.

    python benchmarks/curves_alone.py --draw 150 --jobs 16 --out benchmarks/results/FILE.md
    python benchmarks/curves_alone.py --draw 60 --lab 60    # of the lab a draw as well
    python benchmarks/curves_alone.py --minutes 8           # what is begun by then, in a drawn order

Named: of the symptoms of the curve that the whole recording shows, those that the log shows too.
False: an ill symptom that the log of a healthy script shows.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from provenance import provenance

from sawbones import symptoms
from sawbones.diagnosis.curves import diagnose_log
from sawbones.integrations.exports import export
from sawbones.integrations.logs import read_log
from sawbones.schema import Report
from sawbones.schema.errors import SawbonesError
from sawbones.scoring.cases import Case, corpus_cases, lab_cases
from sawbones.scoring.recording import recorded

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"
# What the training loss alone can show. Overfitting needs the validation loss, which no export has
# unless the script logs one.
OF_THE_CURVE = {"non-finite", "diverges", "does-not-learn", "spikes", "plateau-then-jump"}
LIMIT_S = 240
NO_TIME = "its turn did not come within --minutes"


@dataclass(frozen=True)
class Seen:
    case: Case
    whole: set[str] = field(default_factory=set)
    log: set[str] = field(default_factory=set)
    ill: set[str] = field(default_factory=set)  # of what the log shows
    why_not: str = ""


def looked_at(case: Case, form: str, until: float) -> Seen:
    if time.monotonic() > until:
        return Seen(case, why_not=NO_TIME)
    with tempfile.TemporaryDirectory(prefix="curves-") as folder:
        try:
            run = recorded(case, Path(folder), LIMIT_S)
            whole = {s.symptom for s in symptoms.read(run).symptoms} & OF_THE_CURVE
            bare = Report("inconclusive", str(case.script), run.num_steps, 0.0)
            out = export(run, bare, form, Path(folder, "log"))
            report = diagnose_log(read_log(form, out))
        except (SawbonesError, subprocess.TimeoutExpired, OSError) as error:
            return Seen(case, why_not=str(error).splitlines()[0][:120])
    ill = {s.symptom for s in report.symptoms if s.cls == "ill"}
    return Seen(case, whole, {s.symptom for s in report.symptoms}, ill)


def _draw(cases: list[Case], number: int | None) -> list[Case]:
    if number is None or number >= len(cases):
        return cases
    return random.Random(0).sample(cases, number)


def _line(one: Seen) -> str:
    shown = f"{sorted(one.whole)} and from the log {sorted(one.log)}"
    return f"{one.case.name}: {one.why_not or shown}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", type=int, default=150, help="scripts of the corpus")
    parser.add_argument("--lab", type=int, help="pipelines of the lab (default: all)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="begin no script after these")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    until = time.monotonic() + 60 * (given.minutes or float("inf"))
    form = "tensorboard" if importlib.util.find_spec("tensorboard") else "csv"
    cases = _draw([c for c in lab_cases() if c.num_ranks == 1], given.lab)
    cases += _draw([c for c in corpus_cases(CORPUS) if c.num_ranks == 1], given.draw)
    if given.minutes is not None:  # what is left out is a draw as well
        random.Random(0).shuffle(cases)
    seen = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for one in pool.map(lambda case: looked_at(case, form, until), cases):
            seen.append(one)
            print(_line(one), file=sys.stderr, flush=True)
    judged = [one for one in seen if not one.why_not]
    pairs = [(one, name) for one in judged for name in sorted(one.whole)]
    missed = [f"{one.case.name}: {name}" for one, name in pairs if name not in one.log]
    healthy = [one for one in judged if one.case.fault is None]
    false = [f"{one.case.name}: {', '.join(sorted(one.ill))}" for one in healthy if one.ill]
    told = (
        f"{len(judged)} of {len(cases)} scripts could be read as {form}; of {len(pairs)} symptoms of "
        f"the curve the log shows {len(pairs) - len(missed)}; ill symptoms on {len(false)} of "
        f"{len(healthy)} healthy scripts."
    )
    parts = [
        told,
        "",
        "Missed:",
        *(f"- {m}" for m in missed),
        "",
        "False:",
        *(f"- {f}" for f in false),
    ]
    parts += [
        "",
        "Not read:",
        *(f"- {one.case.name}: {one.why_not}" for one in seen if one.why_not),
    ]
    print("\n".join(parts))
    if given.out is not None:
        lab = "" if given.lab is None else f" --lab {given.lab}"
        limit = "" if given.minutes is None else f" --minutes {given.minutes:g}"
        options = f"--draw {given.draw}{lab} --jobs {given.jobs}{limit}"
        command = f"`python benchmarks/curves_alone.py {options}`"
        lines = [
            "# Symptoms of the curve, from a log alone",
            "",
            command,
            "",
            f"{provenance()}.",
            "",
        ]
        given.out.write_text("\n".join([*lines, *parts, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
