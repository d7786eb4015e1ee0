"""sawbones show RUN: the summary of one recorded run."""

from __future__ import annotations

from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say


def run(args: list[str]) -> None:
    p = Parser("sawbones show", "Summarise a recorded run; works while it is still going.")
    p.add_argument("run", metavar="RUN", help="a run folder")
    given = p.parse_args(args)
    from sawbones import symptoms
    from sawbones.diagnosis.closing import captured_lines
    from sawbones.report.summary import run_summary
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import read_run

    try:
        recorded = read_run(given.run)
        say(run_summary(recorded, symptoms.read(recorded).symptoms))
        for line in captured_lines(recorded):
            say(line)
    except SawbonesError as error:
        usage_error(str(error))
    raise SystemExit(0)
