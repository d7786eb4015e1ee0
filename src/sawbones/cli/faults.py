"""sawbones faults: the whole taxonomy with the state of each."""

from __future__ import annotations

import shutil
import sys
import textwrap
from fnmatch import fnmatch

from sawbones.cli import values
from sawbones.cli.arguments import Parser


def run(args: list[str]) -> None:
    p = Parser("sawbones faults", "All faults that a finding can name, by layer, cheapest first.")
    p.add_argument(
        "pattern",
        nargs="?",
        type=values.fault_glob,
        default="*",
        metavar="GLOB",
        help="only these, e.g. 'loss.*'",
    )
    given = p.parse_args(args)
    from sawbones.pages import overview

    rows = [row for row in overview() if fnmatch(row[0], given.pattern)]
    width = max((len(r[0]) for r in rows), default=0)
    # In a pipe each fault stays on a line of its own.
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    before = width + 12
    for name, state, cause in rows:
        first, *rest = textwrap.wrap(cause, max(columns - before, 20), break_long_words=False)
        print(f"{name:<{width}}  {state:<8}  {first}")
        for line in rest:
            print(f"{'':{before}}{line}")
    checked = sum(r[1] == "checked" for r in rows)
    print(
        f"{len(rows)} fault{'s' * (len(rows) != 1)}, {checked} with a check. One of them: sawbones explain FAULT"
    )
    raise SystemExit(0)
