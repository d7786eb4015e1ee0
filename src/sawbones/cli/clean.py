"""sawbones clean: removes recorded runs that are no longer wanted."""

from __future__ import annotations

import argparse
import re
import shutil
import time
from pathlib import Path

from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
DESCRIPTION = """Remove recorded runs. Without --yes it only says which.

Only folders that hold a run.db are removed; bundles that lie in them go with them."""


def age(text: str) -> float:
    """`7d` -> seconds."""
    found = re.fullmatch(r"(\d+)([mhdw])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no age: a number and m, h, d or w (7d)")
    return float(found[1]) * _UNITS[found[2]]


def run(args: list[str]) -> None:
    p = Parser("sawbones clean", DESCRIPTION)
    p.add_argument("--older", type=age, default=0.0, metavar="AGE", help="only older ones, e.g. 7d")
    p.add_argument(
        "--keep-sick", action="store_true", help="keep runs with an illness or a likely cause"
    )
    p.add_argument("--yes", action="store_true", help="really remove them")
    p.add_argument(
        "folder", nargs="?", default=".sawbones", metavar="FOLDER", help="default: .sawbones"
    )
    given = p.parse_args(args)
    from sawbones.store import find_runs

    folder = Path(given.folder)
    if not folder.is_dir():
        usage_error(
            f"no folder {given.folder!r}. Recordings lie in .sawbones unless --out was given"
        )
    before = time.time() - given.older
    runs = [one for one in find_runs(folder) if (one / "run.db").stat().st_mtime <= before]
    chosen = [one for one in runs if not (given.keep_sick and _is_sick(one))]
    freed = sum(_size(one) for one in chosen)
    for one in chosen:
        if given.yes:
            shutil.rmtree(one)
        say(f"{'removed' if given.yes else 'would remove'} {one}")
    kept = len(runs) - len(chosen)
    told = f"{len(chosen)} run{'s' * (len(chosen) != 1)}, {freed / 1e6:.1f} MB"
    told += f"; {kept} sick kept" if kept else ""
    say(told if given.yes or not chosen else f"{told}. To remove them: add --yes")
    raise SystemExit(0)


def _is_sick(folder: Path) -> bool:
    """One that cannot be read is kept as well: nobody knows what it holds."""
    from sawbones.diagnosis import diagnose_run
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import read_run

    try:
        return diagnose_run(read_run(folder)).report.verdict in ("sick", "unexplained", "crashed")
    except SawbonesError:
        return True


def _size(folder: Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
