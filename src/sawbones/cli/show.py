"""sawbones show RUN: the summary of one recorded run."""

from __future__ import annotations

import argparse

from sawbones.cli.arguments import usage_error
from sawbones.cli.printing import say


def run(args: list[str]) -> None:
    p = argparse.ArgumentParser(
        "sawbones show", description="Summarise a recorded run; works while it is still going."
    )
    p.add_argument("run", metavar="RUN", help="a run folder")
    given = p.parse_args(args)
    from sawbones.report.summary import run_summary
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import read_run

    try:
        say(run_summary(read_run(given.run)))
    except SawbonesError as error:
        usage_error(str(error))
    raise SystemExit(0)
