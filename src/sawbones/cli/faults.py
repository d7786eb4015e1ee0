"""sawbones faults: the whole taxonomy with the state of each."""

from __future__ import annotations

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
    for name, state, cause in rows:
        print(f"{name:<{width}}  {state:<8}  {cause}")
    print(
        f"{len(rows)} faults, {sum(r[1] == 'checked' for r in rows)} with a check. One of "
        "them in full: sawbones explain FAULT"
    )
    raise SystemExit(0)
