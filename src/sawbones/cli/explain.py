"""sawbones explain: the page of a fault or a symptom, or a search over all pages."""

from __future__ import annotations

import sys

from sawbones.cli.arguments import Parser, usage_error


def run(args: list[str]) -> None:
    p = Parser(
        "sawbones explain",
        "The page of a fault (model.causal-leak), of a symptom in your own words (nan, slow, overfits, "
        '"loss does not fall"), or the pages that speak of something.',
    )
    p.add_argument(
        "words",
        metavar="WORDS",
        nargs="+",
        help="a fault id (all of them: sawbones faults), a symptom, or words to search for",
    )
    given = p.parse_args(args)
    from sawbones.lookup import look_up
    from sawbones.schema.errors import SawbonesError

    try:
        page = look_up(" ".join(given.words))
    except SawbonesError as error:
        usage_error(str(error))
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        from sawbones.cli.screen import Screen

        Screen().print(Markdown(page))
    else:
        print(page)
    raise SystemExit(0)
