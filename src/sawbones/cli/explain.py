"""sawbones explain FAULT: the page of one fault."""

from __future__ import annotations

import sys

from sawbones.cli.arguments import Parser, usage_error


def run(args: list[str]) -> None:
    p = Parser(
        "sawbones explain",
        "The catalogue page of a fault: what it is, how it is seen, how it is proven.",
    )
    p.add_argument(
        "fault",
        metavar="FAULT",
        help="a fault id such as model.causal-leak; all of them: sawbones faults",
    )
    given = p.parse_args(args)
    from sawbones.pages import explain
    from sawbones.schema.errors import SawbonesError

    try:
        page = explain(given.fault)
    except SawbonesError as error:
        usage_error(str(error))
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        from sawbones.cli.screen import Screen

        Screen().print(Markdown(page))
    else:
        print(page)
    raise SystemExit(0)
