"""The verdict on every script of the corpus, without trials: many at once, one thread each.

    python benchmarks/verdicts.py --jobs 16 --part 0/3 --kind broken --seconds 260 --out rows.json
    python benchmarks/verdicts.py --table rows.json more.json

Named: a likely or proven finding of the fault that is there. False: any such finding on a script
without one. Scripts are taken in a shuffled order, the same every time; how many a time limit left out is said.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from sawbones.scoring.cases import Case, corpus_cases

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"
SECONDS_EACH = 100.0
MAX_STEPS = 400


def judge(case: Case) -> dict[str, Any]:
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
    from sawbones.diagnosis import diagnose_script

    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="verdict-"))
    try:
        shutil.copy(case.script, work)
        diagnosis = diagnose_script(
            case.script.name,
            case.argv,
            working_folder=work,
            seconds=SECONDS_EACH,
            experiments=False,
            num_ranks=case.num_ranks,
            steps=MAX_STEPS,
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report = diagnosis.report
    certain = [f for f in report.findings if f.status != "suspected"]
    own = [f for f in certain if f.fault == case.fault]
    return {
        "case": case.name,
        "fault": case.fault,
        "verdict": report.verdict,
        "certain": [f.fault for f in certain],
        "suspected": [f.fault for f in report.findings if f.status == "suspected"],
        "located": any(case.located(s.file, s.line) for f in own for s in f.where[:2]),
        "ill": [s.symptom for s in report.symptoms if s.cls == "ill"],
        "seconds": round(time.monotonic() - began, 1),
    }


def rows_of(cases: list[Case], jobs: int, seconds: float) -> Iterator[dict[str, Any]]:
    """No case is begun that could not end in time."""
    last_begin = time.monotonic() + seconds - SECONDS_EACH / 2
    waiting = iter(cases)
    running: dict[Future[dict[str, Any]], Case] = {}
    with ProcessPoolExecutor(jobs) as pool:
        while True:
            while len(running) < jobs and time.monotonic() < last_begin:
                case = next(waiting, None)
                if case is None:
                    break
                running[pool.submit(judge, case)] = case
            if not running:
                return
            done = next(as_completed(running))
            case = running.pop(done)
            if error := done.exception():
                yield {"case": case.name, "fault": case.fault, "error": repr(error)[:200]}
            else:
                yield done.result()


def table(rows: list[dict[str, Any]]) -> str:
    judged = [row for row in rows if "verdict" in row]
    healthy = [row for row in judged if row["fault"] is None]
    broken = [row for row in judged if row["fault"] is not None]
    named = [row for row in broken if row["fault"] in row["certain"]]
    lines = ["| scripts | n | " + " | ".join(VERDICTS) + " |", "|---|---|" + "---|" * len(VERDICTS)]
    for label, group in (("without a fault", healthy), ("broken", broken)):
        counts = Counter(row["verdict"] for row in group)
        shown = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
        lines.append(f"| {label} | {len(group)} | {shown} |")
    first = sum(row["certain"][:1] == [row["fault"]] for row in named)
    located = sum(row["located"] for row in named)
    false = [row for row in healthy if row["certain"]]
    lines += [
        "",
        f"Broken: {len(named)} of {len(broken)} named, {first} of them first, {located} at the "
        f"right line. False alarms: {len(false)} of {len(healthy)}.",
    ]
    for row in broken:
        if row["verdict"] == "healthy":
            beside = f" (suspected: {', '.join(row['suspected'])})" if row["suspected"] else ""
            lines.append(f"- called healthy: {row['case']}{beside}")
    for row in healthy:
        if row["verdict"] != "healthy":
            why = ", ".join([*row["certain"], *row["ill"]])
            lines.append(f"- called {row['verdict']}: {row['case']}: {why}")
    lines += [f"- no result: {row['case']}: {row['error']}" for row in rows if "error" in row]
    return "\n".join(lines) + "\n"


VERDICTS = ("healthy", "sick", "unexplained", "inconclusive", "crashed")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--part", default="0/1", metavar="I/N", help="every N-th script from the I-th")
    p.add_argument("--kind", choices=("all", "broken", "healthy"), default="all")
    p.add_argument("--seconds", type=float, default=float("inf"), help="begin none after that")
    p.add_argument("--out", type=Path, metavar="FILE", help="rows as JSON")
    p.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="only the table of these")
    given = p.parse_args()
    if given.table:
        print(table([row for file in given.table for row in json.loads(file.read_text())]))
        return
    index, parts = map(int, given.part.split("/"))
    cases = [
        case
        for case in corpus_cases(CORPUS)
        if given.kind == "all" or (case.fault is None) == (given.kind == "healthy")
    ][index::parts]
    random.Random(0).shuffle(cases)  # what a time limit leaves is then a sample of all faults
    rows = list(rows_of(cases, given.jobs, given.seconds))
    if given.out:
        given.out.write_text(json.dumps(rows), encoding="utf-8")
    print(f"{len(rows)} of {len(cases)} scripts\n\n{table(rows)}")


if __name__ == "__main__":
    main()
