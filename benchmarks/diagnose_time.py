"""How much CPU time does `sawbones diagnose` take, against the bare script, and where does it go?

    python benchmarks/diagnose_time.py --sample 24 --out rows.json       # this tree
    python benchmarks/diagnose_time.py --tree before=../old/src --tree after=src --repeats 3 GLOB...
    python benchmarks/diagnose_time.py --table rows.json

Every number is user + system time of a whole process tree, so that other work on the machine does
not count. Trees are taken in turn for each script. The findings are compared as well: where two
trees differ in a fault, its status or its first place, that is said.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
CORPUS = HERE.parent.parent / "tests" / "corpus"
MAX_STEPS = 400
LIMIT_S = 900.0
PHASES = ("start", "observing", "early", "reading", "checks", "trials", "pins", "rest")


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def own_s() -> float:
    return time.process_time()


class Phases:
    """CPU seconds by phase, each counted once: what is measured inside of another is taken out."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PHASES, 0.0)
        self._inner = [0.0]

    def timed(self, phase: str | Callable[[], str], function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            name = phase if isinstance(phase, str) else phase()
            began = own_s() + children_s()
            self._inner.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                took = own_s() + children_s() - began
                self.spent[name] += took - self._inner.pop()
                self._inner[-1] += took

        return call


def judge(script: str, argv: list[str], experiments: bool, steps: int | None) -> dict[str, Any]:
    """One diagnosis in this process, with its phases. Run in a child by `diagnosed`."""
    from sawbones import faults
    from sawbones.diagnosis import diagnose_script, engine
    from sawbones.diagnosis.early import EarlyLook
    from sawbones.trials import bench

    phases = Phases()
    phases.spent["start"] = own_s()
    runs = iter(["observing"])
    bench.Bench.execute = phases.timed(lambda: next(runs, "trials"), bench.Bench.execute)  # type: ignore[method-assign]
    bench.Bench._read = phases.timed("reading", bench.Bench._read)  # type: ignore[method-assign]
    EarlyLook.look = phases.timed("early", EarlyLook.look)  # type: ignore[method-assign]
    faults.read = phases.timed("checks", faults.read)
    engine.pin = phases.timed("pins", engine.pin)
    report = diagnose_script(
        script, tuple(argv), seconds=LIMIT_S, experiments=experiments, steps=steps
    ).report
    total = own_s() + children_s()
    phases.spent["rest"] = total - sum(phases.spent.values())
    findings = [[f.fault, f.status, str(f.where[0]) if f.where else ""] for f in report.findings]
    return {
        "total": total,
        "phases": phases.spent,
        "verdict": report.verdict,
        "steps": report.steps,
        "findings": sorted(findings),
        "could_not_look": sorted(c.fault for c in report.could_not_look),
        "ill": sorted(s.symptom for s in report.symptoms if s.cls == "ill"),
    }


def environment(source: Path) -> dict[str, str]:
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return {**os.environ, **threads, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}


def in_a_copy(case: Any, command: list[str], source: Path) -> tuple[float, str]:
    """(CPU seconds, standard output) of a command in a folder that holds the script alone."""
    work = Path(tempfile.mkdtemp(prefix="diagnose-time-"))
    try:
        shutil.copy(case.script, work)
        began = children_s()
        done = subprocess.run(
            command,
            cwd=work,
            env=environment(source),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=2 * LIMIT_S,
            check=False,
        )
        return children_s() - began, done.stdout
    finally:
        shutil.rmtree(work, ignore_errors=True)


# The script ends after as many steps as the diagnosis looks at.
BARE = """
import runpy, sys
most, sys.argv = int(sys.argv[1]), sys.argv[2:]
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
seen = []
def count(*_):
    seen.append(1)
    if len(seen) >= most > 0:
        sys.stdout.flush()
        import os; os._exit(0)
register_optimizer_step_post_hook(count)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def bare(case: Any, steps: int | None, source: Path) -> float:
    script = [case.script.name, *case.argv]
    return in_a_copy(case, [sys.executable, "-c", BARE, str(steps or 0), *script], source)[0]


def diagnosed(case: Any, given: argparse.Namespace, source: Path) -> dict[str, Any]:
    told = json.dumps([case.script.name, list(case.argv), given.experiments, given.steps])
    _, said = in_a_copy(case, [sys.executable, str(HERE), "--one", told], source)
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    return answer


def chosen(given: argparse.Namespace) -> list[Any]:
    from sawbones.scoring.cases import corpus_cases

    cases = [case for case in corpus_cases(CORPUS) if case.num_ranks == 1]
    cases.sort(key=lambda case: str(case.name))
    if given.globs:
        cases = [c for c in cases if any(fnmatch(str(c.name), g) for g in given.globs)]
    if given.sample:
        cases = random.Random(given.seed).sample(cases, min(given.sample, len(cases)))
    return cases


def measured(cases: list[Any], given: argparse.Namespace) -> list[dict[str, Any]]:
    trees = dict(tree.split("=", 1) for tree in given.tree) or {
        "this": str(HERE.parents[1] / "src")
    }
    rows = []
    for case in cases:
        row: dict[str, Any] = {"case": str(case.name), "bare": [], "trees": {t: [] for t in trees}}
        for _ in range(given.repeats):
            row["bare"].append(bare(case, given.steps, Path(trees[next(iter(trees))]).resolve()))
            for tree, source in trees.items():
                row["trees"][tree].append(diagnosed(case, given, Path(source).resolve()))
        rows.append(row)
        print(line(row), flush=True)
        if given.out:
            given.out.write_text(json.dumps(rows), encoding="utf-8")
    return rows


def line(row: dict[str, Any]) -> str:
    own = statistics.median(row["bare"])
    cells = [row["case"], f"{own:.1f}"]
    for answers in row["trees"].values():
        total = statistics.median(a["total"] for a in answers)
        middle = [statistics.median(a["phases"][p] for a in answers) for p in PHASES]
        cells += [f"{total:.1f}", f"{total / own:.1f}", " ".join(f"{m:.1f}" for m in middle)]
    cells.append(difference(row))
    return f"| {' | '.join(cells)} |"


def difference(row: dict[str, Any]) -> str:
    """What the trees disagree about; the first answer of each counts."""
    parts = ("verdict", "steps", "findings", "could_not_look", "ill")
    first, *others = [answers[0] for answers in row["trees"].values()]
    return "; ".join(
        f"{part}: {first[part]} / {other[part]}"
        for other in others
        for part in parts
        if first[part] != other[part]
    )


def table(rows: list[dict[str, Any]]) -> str:
    trees = list(rows[0]["trees"])
    heads = ["script", "bare, s"]
    for tree in trees:
        heads += [f"{tree}, s", "x bare", " ".join(PHASES)]
    lines = [f"| {' | '.join([*heads, 'differs in'])} |", f"|{'---|' * (len(heads) + 1)}"]
    lines += [line(row) for row in rows]
    own = [statistics.median(row["bare"]) for row in rows]
    totals = {
        tree: [statistics.median(a["total"] for a in row["trees"][tree]) for row in rows]
        for tree in trees
    }
    lines.append("")
    for tree, all_s in totals.items():
        ratio = statistics.median(s / bare_s for s, bare_s in zip(all_s, own, strict=True))
        lines.append(
            f"{tree}: median {statistics.median(all_s):.1f} s, {ratio:.1f} x the bare script "
            f"({statistics.median(own):.1f} s); sum {sum(all_s):.0f} s."
        )
    if len(trees) == 2:
        old, new = totals.values()
        ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
        lines.append(f"{trees[1]} / {trees[0]}, median over scripts: {ratio:.2f}.")
    same = sum(not difference(row) for row in rows)
    lines.append(f"The same findings on {same} of {len(rows)} scripts.")
    return "\n".join(lines) + "\n"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("globs", nargs="*", metavar="GLOB", help="names of corpus scripts")
    p.add_argument("--sample", type=int, metavar="N", help="so many of them, by --seed")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--tree", action="append", default=[], metavar="NAME=SRC")
    p.add_argument("--repeats", type=int, default=1)
    p.add_argument("--steps", type=int, default=MAX_STEPS)
    p.add_argument("--experiments", action="store_true", help="with trials")
    p.add_argument("--out", type=Path, metavar="FILE", help="rows as JSON")
    p.add_argument("--table", type=Path, metavar="FILE", help="only the table of these rows")
    p.add_argument("--one", help=argparse.SUPPRESS)
    given = p.parse_args()
    if given.one:
        print(json.dumps(judge(*json.loads(given.one))))
        return
    rows = json.loads(given.table.read_text()) if given.table else measured(chosen(given), given)
    print(table(rows))


if __name__ == "__main__":
    main()
