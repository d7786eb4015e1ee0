"""sawbones runs: the recorded runs of a folder."""

from __future__ import annotations

from pathlib import Path

from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say


def run(args: list[str]) -> None:
    p = Parser("sawbones runs", "List recorded runs, oldest first.")
    p.add_argument(
        "folder",
        nargs="?",
        default=".sawbones",
        metavar="FOLDER",
        help="where to look (default: .sawbones)",
    )
    given = p.parse_args(args)
    from sawbones import symptoms
    from sawbones.report.summary import one_line
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import find_runs, read_run

    folder = Path(given.folder)
    if given.folder != ".sawbones" and not folder.is_dir():
        usage_error(
            f"no folder {given.folder!r}. Recordings lie in .sawbones unless --out was given"
        )
    found = find_runs(folder)
    if not found:
        say(f"No recorded runs in {given.folder}. Record one: sawbones run train.py")
    for each in found:
        try:
            recorded = read_run(each)
            say(one_line(recorded, symptoms.read(recorded).symptoms))
        except SawbonesError as error:  # one that cannot be read must not hide the others
            say(f"{each}  not readable: {' '.join(str(error).split())}")
    raise SystemExit(0)
