"""Crashing programs with known causes: is the cause named, with the right fix, at the root line?

    python benchmarks/crashes.py programs/ --truth truth.json --out rows.json
    python benchmarks/crashes.py --truth truth.json --table rows.json

The truth file holds, for each program's name: faults (any of them is right; none: nothing may be
claimed), lines (the root, any of them), says (regular expressions that the finding's words must
match, such as the width that would fit) and source. Only the first likely or proven finding counts.
A program is explained when fault and words are right, located when one of its first two places
lies within five lines. The words are a sieve: read the rows before you believe the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sawbones.schema import Finding, Report
from sawbones.scoring.cases import NEAR_LINES

SECONDS_EACH = 100.0


def words(finding: Finding) -> str:
    """What the finding says to a reader, on one line."""
    parts = [finding.title, *(e.text for e in finding.evidence)]
    if finding.explanation is not None:
        parts.append(str(finding.explanation))
    if finding.fix is not None:
        parts += [finding.fix.summary, finding.fix.patch or ""]
    return re.sub(r"\s+", " ", " | ".join(parts))


def row(name: str, report: Report, truth: Mapping[str, Any]) -> dict[str, Any]:
    certain = [f for f in report.findings if f.status != "suspected"]
    first = certain[0] if certain else None
    said = words(first) if first is not None else ""
    places = [[Path(s.file).name, s.line] for s in first.where[:2]] if first is not None else []
    named = first is not None and first.fault in truth["faults"]
    return {
        "program": name,
        "verdict": report.verdict,
        "found": [f.fault for f in certain],
        "suspected": [f.fault for f in report.findings if f.status == "suspected"],
        "named": named,
        "explained": named and all(re.search(s, said, re.IGNORECASE) for s in truth["says"]),
        "located": named
        and any(
            file == f"{name}.py" and abs(line - right) <= NEAR_LINES
            for file, line in places
            for right in truth["lines"]
        ),
        "places": places,
        "said": said,
    }


def rows_of(folder: Path, truths: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    from sawbones.diagnosis import diagnose_script

    for name, truth in truths.items():
        began = time.monotonic()
        work = Path(tempfile.mkdtemp(prefix="crash-"))
        try:
            shutil.copy(folder / f"{name}.py", work)
            report = diagnose_script(
                f"{name}.py", working_folder=work, seconds=SECONDS_EACH, experiments=False
            ).report
        finally:
            shutil.rmtree(work, ignore_errors=True)
        yield {**row(name, report, truth), "seconds": round(time.monotonic() - began, 1)}


def table(rows: list[dict[str, Any]], truths: Mapping[str, Any]) -> str:
    lines = ["| programs | n | named | explained | located |", "|---|---|---|---|---|"]
    with_fault = [r for r in rows if truths[r["program"]]["faults"]]
    public = [r for r in with_fault if truths[r["program"]]["source"].startswith("http")]
    own = [r for r in with_fault if r not in public]
    for label, group in (("from public sources", public), ("written for it", own)):
        counts = " | ".join(
            str(sum(r[k] for r in group)) for k in ("named", "explained", "located")
        )
        lines.append(f"| {label} | {len(group)} | {counts} |")
    others = [r for r in rows if r not in with_fault]
    claimed = [r for r in others if r["found"]]
    lines += ["", f"Crashes of other kinds: something claimed in {len(claimed)} of {len(others)}."]
    lines += [f"- claimed: {r['program']}: {', '.join(r['found'])}" for r in claimed]
    for missed in (r for r in with_fault if not (r["explained"] and r["located"])):
        found = ", ".join(missed["found"]) or "nothing"
        what = "not explained" if not missed["explained"] else "not located"
        lines.append(f"- {what}: {missed['program']}: {found}")
    return "\n".join(lines) + "\n"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("programs", type=Path, nargs="?", metavar="FOLDER")
    p.add_argument("--truth", type=Path, required=True, metavar="FILE")
    p.add_argument("--only", nargs="+", metavar="NAME", help="these programs alone")
    p.add_argument("--out", type=Path, metavar="FILE", help="rows as JSON")
    p.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="only the table of these")
    given = p.parse_args()
    truths = json.loads(given.truth.read_text(encoding="utf-8"))
    if given.table:
        rows = [r for file in given.table for r in json.loads(file.read_text(encoding="utf-8"))]
    else:
        os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
        chosen = {k: v for k, v in truths.items() if not given.only or k in given.only}
        rows = list(rows_of(given.programs, chosen))
        if given.out:
            given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(table(rows, truths))


if __name__ == "__main__":
    main()
