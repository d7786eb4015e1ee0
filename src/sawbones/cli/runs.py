"""sawbones runs: the recorded runs of a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from sawbones.cli.printing import say


def run(args: list[str]) -> None:
    p = argparse.ArgumentParser("sawbones runs", description="List recorded runs, oldest first.")
    p.add_argument(
        "folder", nargs="?", default="runs", metavar="FOLDER", help="where to look (default: runs)"
    )
    given = p.parse_args(args)
    from sawbones.report.summary import one_line
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import find_runs, read_run

    found = find_runs(Path(given.folder))
    if not found:
        say(f"No recorded runs in {given.folder}. Record one: sawbones run train.py")
        raise SystemExit(0)
    for folder in found:
        try:
            say(one_line(read_run(folder)))
        except SawbonesError as error:  # the others are still listed
            say(f"{folder}  {error}")
    raise SystemExit(0)
