"""`sawbones fix` over lab and corpus: which findings get a verified patch, whether the patched
script ends where its twin does, and whether every change of a patch is needed.

python benchmarks/fixing.py [--lab] [--corpus N] [--only GLOB]... [--minutes M] [--jobs J] [--rows FILE]
python benchmarks/fixing.py --out benchmarks/results/fix_cpu_202611.md [--rows FILE]   # the page of
the rows so far, nothing is run

A case that has a row is left alone, so that a round that was stopped can go on. Each case is
diagnosed for its own fault only, and for at most 60 steps: what is measured is the fixing.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from fnmatch import fnmatch
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ROWS = Path(tempfile.gettempdir()) / "sawbones-fix-rows.jsonl"
STEPS = 60
SECONDS = 240.0
SEED = 202611
STANDARD_ERRORS = 3.0  # of the difference of two means of noisy losses
SHARE_OF_START = 0.05  # of the loss at the start: closer is the same for any purpose


def cases(lab: bool, num_corpus: int) -> Iterator[tuple[str, str, Path, Path | None]]:
    """(name, fault, broken script, healthy script; None: the same script with --healthy)."""
    from sawbones.fixing.recipes import recipes
    from sawbones.scoring.cases import corpus_cases, lab_cases

    # Recipes that only ask a person have nothing to try.
    known = {f for f, fix in recipes().items() if "Change" in fix.__annotations__.get("return", "")}
    own = [c for c in lab_cases() if c.fault in known and c.num_ranks == 1] if lab else []
    pairs = [
        c for c in corpus_cases(ROOT / "tests/corpus") if c.fault in known and c.num_ranks == 1
    ]
    random.Random(SEED).shuffle(own)
    random.Random(SEED).shuffle(pairs)
    for one_of_each in zip_longest(own, pairs[:num_corpus]):
        for case in filter(None, one_of_each):
            twin = case.script.with_name("healthy.py")
            yield case.name, str(case.fault), case.script, twin if twin.exists() else None


def measure(given: argparse.Namespace) -> None:
    known = {row["case"] for row in read_rows(given.rows)}
    end = time.time() + 60 * given.minutes
    wanted = [
        case
        for case in cases(given.lab, given.corpus)
        if case[0] not in known and any(fnmatch(case[1], p) for p in given.only or ["*"])
    ]
    # Spawned: a process that has run operators of torch is not to be forked.
    with ProcessPoolExecutor(given.jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(row_of, *case, end) for case in wanted]):
            row = done.result()
            if row is None:
                continue
            print(json.dumps(row), flush=True)
            with given.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def row_of(
    name: str, fault: str, broken: Path, healthy: Path | None, end: float
) -> dict[str, Any] | None:
    """None: it was not begun, since the time is over."""
    if time.time() > end:
        return None
    began = time.monotonic()
    row: dict[str, Any] = {"case": name, "fault": fault, "commit": commit()}
    try:
        with tempfile.TemporaryDirectory() as folder:
            row |= one(fault, broken, healthy, Path(folder))
    except Exception as error:  # one script that cannot be run does not end the round
        row |= {"status": "error", "note": f"{type(error).__name__}: {str(error)[:160]}"}
    return row | {"seconds": round(time.monotonic() - began, 1)}


def one(fault: str, broken: Path, healthy: Path | None, folder: Path) -> dict[str, Any]:
    from sawbones.diagnosis import diagnose_script
    from sawbones.fixing.verifying import Verifier
    from sawbones.trials.bench import Bench, Patient

    for path in broken.parent.iterdir():
        if path.is_file() and path.suffix in (".py", ".csv", ".json", ".txt"):
            shutil.copy(path, folder / path.name)
    script = broken.name
    found = diagnose_script(script, working_folder=folder, seconds=SECONDS, steps=STEPS, only=fault)
    mine = [f for f in found.report.findings if f.fault == fault]
    if not mine or mine[0].status == "suspected":
        return {"status": mine[0].status if mine else "not found"}
    report = replace(found.report, findings=tuple(mine[:1]))
    patient = Patient(script, (), folder)
    with Bench(patient, SECONDS) as bench:
        bench.baseline = found.run
        verifier = Verifier(bench, found.run, report, lambda text: None)
        fixed = verifier.fix_all(folder)
        finding = fixed.report.findings[0]
        row: dict[str, Any] = {"status": finding.status, "level": "none"}
        fix = finding.fix
        if fix is None or not fix.patch:
            tried = [e.text for e in finding.evidence if e.text.startswith("tried, ")]
            decides = fix is not None and fix.summary.startswith(("Decide ", "Choose "))
            row["level"] = "decide" if decides else "none"
            return row | {"note": tried[0][:200] if tried else ""}
        measured = fix.measured or {}
        row |= {"level": fix.level, "note": str(measured.get("result", ""))[:200]}
        row["applies"] = applies(fix.patch, folder)
        row["raises"] = measured.get("after", {}).get("ending") == "exception"
        if fix.level == "verified":
            row |= hunks(verifier, [mine[0]], fixed.patches[0])
            row |= against_twin(bench, patient, healthy, measured)
    return row


def applies(patch: str, folder: Path) -> bool:
    """In a copy: git takes it, and every file parses."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], cwd=copy, input=patch.encode()
        )
        try:
            for path in Path(copy).rglob("*.py"):
                ast.parse(path.read_bytes())
        except SyntaxError:
            return False
        return done.returncode == 0


def hunks(verifier: Any, findings: list[Any], patch: Any) -> dict[str, int]:
    """Of a patch of several hunks, each is left out once: one that is not missed was not needed."""
    from sawbones.fixing.editing import EditRefused
    from sawbones.fixing.proposing import Patch, changed

    groups = in_hunks(patch)
    needed = len(groups)
    for left_out in groups if len(groups) > 1 else ():
        rest = tuple(e for group in groups if group is not left_out for e in group)
        change = replace(patch.change, edits=rest)
        try:
            sources = [old for old, _ in patch.files if any(e.file == old.file for e in rest)]
            smaller = Patch(patch.fault, change, changed(sources, change))
        except EditRefused:
            continue
        tried = verifier.try_patches(findings, [smaller])
        needed -= tried is not None and tried.verified
    return {"hunks": len(groups), "needed": needed}


def in_hunks(patch: Any) -> list[list[Any]]:
    """Edits that a diff shows in one piece."""
    from sawbones.fixing.editing import CONTEXT_LINES

    texts = {old.file: old.utf8 for old, _ in patch.files}
    groups: list[list[Any]] = []
    last = ("", -1)
    for edit in sorted(patch.change.edits):
        line = texts[edit.file][: edit.start].count(b"\n")
        if edit.file != last[0] or line - last[1] > 2 * CONTEXT_LINES + 1:
            groups.append([])
        groups[-1].append(edit)
        last = (edit.file, texts[edit.file][: edit.stop].count(b"\n"))
    return groups


def against_twin(
    bench: Any, patient: Any, healthy: Path | None, measured: Mapping[str, Any]
) -> dict[str, Any]:
    twin = (
        replace(patient, script=healthy.name) if healthy else replace(patient, argv=("--healthy",))
    )
    after = measured.get("after", {})
    run = bench.rerun(max_steps=after.get("steps") or STEPS, patient=twin)
    ours = np.asarray(after.get("losses") or [], dtype=float)
    theirs = np.asarray(run.losses, dtype=float)
    if len(ours) < 8 or len(theirs) < 8:
        return {"twin": "too short"}
    ours, theirs, start = ours[-len(ours) // 4 :], theirs[-len(theirs) // 4 :], theirs[0]
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return {"twin": "not finite"}
    gap = abs(float(ours.mean() - theirs.mean()))
    error = math.hypot(*(float(x.std(ddof=1)) / math.sqrt(len(x)) for x in (ours, theirs)))
    same = gap <= max(STANDARD_ERRORS * error, SHARE_OF_START * abs(float(start)))
    return {
        "twin": "same" if same else "differs",
        "loss": round(float(ours.mean()), 5),
        "twin_loss": round(float(theirs.mean()), 5),
    }


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip()


def read_rows(rows: Path) -> list[dict[str, Any]]:
    if not rows.exists():
        return []
    return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.0%})" if whole else "")


def figures(rows: list[dict[str, Any]]) -> list[str]:
    proven = [r for r in rows if r["status"] == "proven" and r.get("level") != "decide"]
    offered = [r for r in rows if r.get("level") in ("verified", "unsafe", "safe")]
    verified = [r for r in offered if r["level"] == "verified"]
    judged = [r for r in verified if r.get("twin") in ("same", "differs")]
    bad = [r for r in offered if not r["applies"] or r["raises"]]
    total, needed = (sum(r.get(k, 0) for r in verified) for k in ("hunks", "needed"))
    proven_verified = sum(r.get("level") == "verified" for r in proven)
    certain = [r for r in rows if r["status"] in ("proven", "likely") and r["level"] != "decide"]
    return [
        f"- proven findings with a recipe that get a verified patch: "
        f"{share(proven_verified, len(proven))}",
        f"- proven or likely findings: {share(len(verified), len(certain))}",
        f"- offered patches that do not apply, do not parse or raise: {share(len(bad), len(offered))}",
        f"- verified patches that end within noise of the twin: "
        f"{share(sum(r['twin'] == 'same' for r in judged), len(judged))}",
        f"- hunks that are needed: {share(needed, total)}",
    ]


def page(rows: Path, out: Path) -> None:
    import torch

    found = sorted(read_rows(rows), key=lambda r: str(r["case"]))
    lab = [r for r in found if r["case"].startswith("lab/")]
    corpus = [r for r in found if not r["case"].startswith("lab/")]
    unseen = [r for r in found if r["status"] in ("suspected", "not found", "error")]
    lines = [
        "# Patches over lab and corpus",
        "",
        f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, two "
        "shared cores, one thread.",
        "",
        "`python benchmarks/fixing.py --lab --corpus 200`, at the commit in the row, as far as the "
        f"machine afforded: {len(lab)} scripts of the lab and {len(corpus)} of the corpus (a sample "
        f"with seed {SEED}). Each is diagnosed for its own fault only, for at most {STEPS} steps. "
        '"Within noise": the means of the last quarter of both losses are no further apart than '
        f"{STANDARD_ERRORS:g} standard errors, or than {SHARE_OF_START:.0%} of the loss at the "
        "start. A hunk is needed when the patch without it is not verified.",
        "",
        f"In {len(unseen)} of {len(found)} the diagnosis is less than likely, so that there is "
        "nothing to fix; they are listed and not counted.",
        "",
        "## Lab",
        "",
        *figures(lab),
        "",
        "## Corpus",
        "",
        *figures(corpus),
        "",
        "| script | finding | patch | loss, twin | needed | s | commit | note |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in found:
        twin = (
            f"{r['loss']:g}, {r['twin_loss']:g} ({r['twin']})" if "loss" in r else r.get("twin", "")
        )
        needed = f"{r['needed']} of {r['hunks']}" if "hunks" in r else ""
        note = "" if r.get("level") == "verified" else str(r.get("note", ""))
        columns = (
            r["case"],
            r["status"],
            r.get("level", ""),
            twin,
            needed,
            r["seconds"],
            r["commit"],
        )
        lines.append("| " + " | ".join(str(c).replace("|", "/") for c in (*columns, note)) + " |")
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(out)


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--lab", action="store_true", help="the scripts of the lab")
    p.add_argument("--corpus", type=int, default=0, metavar="N", help="so many of the corpus")
    p.add_argument("--only", action="append", metavar="GLOB", help="faults, such as 'loss.*'")
    p.add_argument("--minutes", type=float, default=1e9, metavar="M", help="begin no case later")
    p.add_argument("--jobs", type=int, default=1, metavar="J", help="cases side by side")
    p.add_argument("--rows", type=Path, default=ROWS, metavar="FILE")
    p.add_argument("--out", type=Path, metavar="FILE", help="write the page, and run nothing")
    given = p.parse_args()
    if given.out is not None:
        page(given.rows, given.out)
    else:
        measure(given)


if __name__ == "__main__":
    main()
