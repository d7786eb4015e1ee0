"""Programs by other hands, with known truth: what is said of the ill ones and of their healthy twins.

    python benchmarks/other_hands.py programs/ --jobs 8 --seconds 100 --out rows.json
    python benchmarks/other_hands.py programs/ --table rows.json

Programs lie in GROUP/NAME/: `ill.py` and `ok.py` (or the folders `ill/` and `ok/`, started as `command.txt`
says), and `truth.json` with the mistake in words, `lines` (where it stands) and `right` (the fault ids
that name it; written down before the first try). A program without an `ill` side is a healthy one.
Programs run side by side, one thread each, on copies.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.scoring.cases import NEAR_LINES

SIDES = ("ill", "ok")


@dataclass(frozen=True)
class Program:
    group: str
    name: str
    side: str
    folder: Path

    @property
    def command(self) -> list[str]:
        for told in (self.folder / "command.txt", self.inside / "command.txt"):
            if told.exists():
                return told.read_text(encoding="utf-8").split()
        return [f"{self.side}.py"]

    @property
    def inside(self) -> Path:
        """The folder that is copied."""
        own = self.folder / self.side
        return own if own.is_dir() else self.folder


def programs(root: Path, only: Sequence[str], sides: Sequence[str]) -> Iterator[Program]:
    for folder in sorted(p for p in root.glob("*/*") if p.is_dir()):
        if only and folder.name not in only and folder.parent.name not in only:
            continue
        for side in sides:
            if (folder / side).is_dir() or (folder / f"{side}.py").exists():
                yield Program(folder.parent.name, folder.name, side, folder)


def diagnosed(program: Program, seconds: int, reports: Path | None) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="other-hands-") as scratch:
        work, out = Path(scratch, "work"), Path(scratch, "report.json")
        shutil.copytree(program.inside, work, ignore=shutil.ignore_patterns("truth.json"))
        call = [sys.executable, "-m", "sawbones", "diagnose", "--quiet", "--json", str(out)]
        call += ["--seconds", str(seconds), *program.command]
        settings = {
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "CUDA_VISIBLE_DEVICES": "",
        }
        ended = subprocess.run(
            call, cwd=work, capture_output=True, text=True, env={**os.environ, **settings}
        )
        report = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
    row = {"group": program.group, "name": program.name, "side": program.side}
    row |= {"seconds": round(time.monotonic() - began, 1)}
    if report is None:
        return row | {"verdict": "no report", "findings": [], "said": ended.stderr[-2000:]}
    if reports is not None:
        kept = reports / f"{program.group}-{program.name}-{program.side}.json"
        kept.write_text(json.dumps(report), encoding="utf-8")
    findings = [
        {
            "fault": f["fault"],
            "status": f["status"],
            "title": f["title"],
            "where": [[w["file"], w["line"]] for w in f["where"][:3]],
        }
        for f in report["findings"]
    ]
    symptoms = [s["symptom"] for s in report["symptoms"] if s["class"] == "ill"]
    return row | {"verdict": report["verdict"], "findings": findings, "ill_symptoms": symptoms}


def named_first(row: dict[str, Any], truth: dict[str, Any]) -> bool:
    return bool(row["findings"]) and row["findings"][0]["fault"] in truth.get("right", ())


def located(row: dict[str, Any], truth: dict[str, Any]) -> bool:
    """One of the first two places of the first finding lies near a line of the truth."""
    wanted = [(Path(f).name, int(n)) for f, _, n in (t.rpartition(":") for t in truth["lines"])]
    return any(
        Path(file).name == name and abs(line - n) <= NEAR_LINES
        for file, line in row["findings"][0]["where"][:2]
        for name, n in wanted
    )


def alarmed(row: dict[str, Any]) -> bool:
    return any(f["status"] != "suspected" for f in row["findings"])


def first_said(row: dict[str, Any]) -> str:
    if not row["findings"]:
        return str(row["verdict"])
    first = row["findings"][0]
    place = f", {first['where'][0][0]}:{first['where'][0][1]}" if first["where"] else ""
    verdict = f" ({row['verdict']})" if first["status"] == "suspected" else ""
    return f"{first['fault']}, {first['status']}{place}{verdict}"


def table(root: Path, rows: list[dict[str, Any]]) -> str:
    by_key = {(r["group"], r["name"], r["side"]): r for r in rows}
    lines = [
        "| programs | n | cause first | line within 5, of these | called healthy | twins alarmed |",
        "|---|---|---|---|---|---|",
    ]
    details: list[str] = []
    for group in sorted({r["group"] for r in rows}):
        names = sorted({r["name"] for r in rows if r["group"] == group})
        truths = {
            n: json.loads((root / group / n / "truth.json").read_text("utf-8")) for n in names
        }
        ill = {n: by_key[group, n, "ill"] for n in names if (group, n, "ill") in by_key}
        twins = {n: by_key[group, n, "ok"] for n in names if (group, n, "ok") in by_key}
        right = [n for n, r in ill.items() if named_first(r, truths[n])]
        near = [n for n in right if located(ill[n], truths[n])]
        healthy = [n for n, r in ill.items() if r["verdict"] == "healthy"]
        false = [n for n, r in twins.items() if alarmed(r) or r["verdict"] == "unexplained"]
        lines.append(
            f"| {group} | {len(ill)} | {len(right)} | {len(near)} | {len(healthy)} "
            f"| {len(false)} of {len(twins)} |"
        )
        details += [
            "",
            f"## {group}",
            "",
            "| program | truth | right | said | twin |",
            "|---|---|---|---|---|",
        ]
        for n in names:
            said = first_said(ill[n]) if n in ill else "-"
            twin = first_said(twins[n]) if n in twins else "-"
            ids = ", ".join(truths[n].get("right", ())) or "-"
            mark = "**" if n in ill and n not in right else ""
            details.append(
                f"| {n} | {truths[n]['mistake']} | {ids} | {mark}{said}{mark} | {twin} |"
            )
    return "\n".join([*lines, *details]) + "\n"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("programs", type=Path, metavar="FOLDER")
    p.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these programs or groups")
    p.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--seconds", type=int, default=100, help="budget of one diagnosis")
    p.add_argument("--within", type=int, default=0, help="start none after this many seconds")
    p.add_argument("--out", type=Path, metavar="FILE", help="rows as JSON, written as they come")
    p.add_argument("--reports", type=Path, metavar="FOLDER", help="keep the reports there")
    p.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="only the table of these")
    given = p.parse_args()
    if given.table:
        print(
            table(
                given.programs, [r for f in given.table for r in json.loads(f.read_text("utf-8"))]
            )
        )
        return
    if given.reports:
        given.reports.mkdir(parents=True, exist_ok=True)
    began, rows = time.monotonic(), []

    def one(program: Program) -> dict[str, Any] | None:
        if given.within and time.monotonic() - began > given.within:
            return None
        return diagnosed(program, given.seconds, given.reports)

    with ThreadPoolExecutor(given.jobs) as pool:
        todo = list(programs(given.programs, given.only, given.sides))
        for done in as_completed([pool.submit(one, program) for program in todo]):
            row = done.result()
            if row is None:
                continue
            rows.append(row)
            print(f"{len(rows)}/{len(todo)} {row['group']}/{row['name']} {row['side']}", end=" ")
            print(f"{row['seconds']} s: {first_said(row)}", flush=True)
            if given.out:
                given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
