"""Pinned tests over the lab: each must fail on its broken script and pass on the mended one. One
row per fault.

python benchmarks/pins.py [--only GLOB]... [--rows FILE]
python benchmarks/pins.py --out benchmarks/results/pins_cpu_202611.md [--rows FILE]    # the page of
the rows so far, nothing is run
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ROWS = Path(tempfile.gettempdir()) / "sawbones-pin-rows.jsonl"


def measure(only: list[str], rows: Path) -> bool:
    """Faults that have a row already are left alone, so that a run that was stopped can go on."""
    import torch

    from sawbones.lab.ward import beds

    known = {row["fault"] for row in read_rows(rows)}
    good = True
    for bed in beds():
        if bed.fault in known or not any(fnmatch(bed.fault, pattern) for pattern in only):
            continue
        if bed.device != "cpu" and not torch.cuda.is_available():
            continue
        row = one_pin(bed)
        good = good and row["good"]
        print(json.dumps(row), flush=True)
        with rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    return good


def one_pin(bed: Any) -> dict[str, Any]:
    from tests.testing.pinned_lab import examine

    began = time.perf_counter()
    row: dict[str, Any] = {"fault": bed.fault, "commit": commit()}
    try:
        with tempfile.TemporaryDirectory() as folder:
            case = examine(bed, Path(folder))
    except Exception as error:  # one patient that cannot be examined does not end the round
        row |= {
            "good": False,
            "kind": "-",
            "broken": f"{type(error).__name__}: {str(error)[:200]}",
            "mended": None,
        }
    else:
        broken, mended = (
            text and text.strip().splitlines()[0][:160] for text in (case.broken, case.mended)
        )
        row |= {
            "good": broken is not None and mended is None,
            "kind": case.pinned.kind,
            "broken": broken,
            "mended": mended,
        }
    return row | {"seconds": round(time.perf_counter() - began, 1)}


def commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        " and changes" if git("status", "--porcelain", "--", "src") else ""
    )


def read_rows(rows: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
        if rows.exists()
        else []
    )


def page(rows: Path, out: Path) -> None:
    import torch

    from sawbones.lab.ward import beds

    found = sorted(read_rows(rows), key=lambda row: str(row["fault"]))
    lab = len(beds())
    lines = [
        "# Pinned tests",
        "",
        f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}. "
        "Two rounds side by side on two cores.",
        "",
        "`python benchmarks/pins.py --only FAULT` for each fault of the table, at the "
        "commit in its row. The broken script is "
        "recorded and pinned; then the test is executed on it, and once more on the same "
        "script with the fault taken out.",
        "",
        f"{len(found)} of the {lab} faults of the lab have a row; "
        f"{sum(row['good'] for row in found)} of these tests fail on the "
        "broken script and pass on the mended one.",
        "",
        "| fault | test | broken script | mended script | s | commit |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        broken = f"fails: {row['broken']}" if row["broken"] else "PASSES"
        mended = (
            f"FAILS: {row['mended']}" if row["mended"] else "passes" if row["kind"] != "-" else "-"
        )
        columns = [row["fault"], row["kind"], broken, mended, row["seconds"], row["commit"]]
        lines.append("| " + " | ".join(str(c).replace("|", "/") for c in columns) + " |")
    if any("changes" in row["commit"] for row in found):
        lines += ["", '"and changes": src held files or lines that this commit does not have.']
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(out)


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "--only",
        action="append",
        metavar="GLOB",
        help="faults, such as 'loss.*'; may be given several times",
    )
    p.add_argument("--rows", type=Path, default=ROWS, metavar="FILE")
    p.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the page of the rows so far, and run nothing",
    )
    given = p.parse_args()
    if given.out is not None:
        page(given.rows, given.out)
    elif not measure(given.only or ["*"], given.rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
